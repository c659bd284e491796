"""The sub-commands of `devlet`. None is imported before it is chosen: the table carries what `--help` needs."""

import importlib
import os
from collections.abc import Mapping

import click

# Name → what `devlet --help` says. The command is the attribute `command` of the module `devlet.cli.NAME`.
COMMANDS = {
    "apply": "Create or change objects from files.",
    "capture": "Write what a node's drivers publish to a file.",
    "cel": "Evaluate selectors on devices, and check them.",
    "checkpoint": "Look at, check, convert and repair checkpoints of devices.",
    "claim": "Release claims that drivers do not unprepare.",
    "control": "Run our scheduler and controllers for another cluster.",
    "delete": "Delete objects.",
    "demo": "Show on this machine what devlet does; no root, no network.",
    "describe": "Show objects in detail, with their events.",
    "drift": "Compare two captured files, or one with a node.",
    "driver": "Make a project for a driver in Python.",
    "events": "List events, oldest first.",
    "exec": "Start a program that has the kubelet's paths built in.",
    "explain": "Say why a pod or claim has its devices, or why not.",
    "get": "Print objects.",
    "play": "Serve a captured file as virtual drivers.",
    "sanity": "Check that a driver keeps its contract with Kubernetes.",
    "simulate": "Allocate devices offline: what fits where.",
    "store": "Check and repair the database of an embedded cluster.",
    "token": "Make credentials for a driver or for another node.",
    "up": "Run the daemon.",
    "version": "Print the version.",
    "wait": "Wait for a condition of objects.",
}
# Or gRPC's lines about drivers that go get among ours. It looks when it is imported, so this comes before that.
_QUIET = ("GRPC_VERBOSITY", "ERROR")


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if name != "exec":  # whose program has the environment that it was given
            os.environ.setdefault(*_QUIET)
        command = importlib.import_module(f"devlet.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def _value(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """kubectl also takes `-n=team`, which click reads as `=team`."""
    return value and value.removeprefix("=")


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExample:\n  devlet demo --once",
)
@click.option("--version", is_flag=True, help="Print the version of devlet and exit.")
@click.option("--kubeconfig", metavar="FILE", help="For the command: talk to the cluster of this kubeconfig.")
@click.option("--context", "context_name", metavar="NAME", help="For the command: which context of the kubeconfig.")
@click.option("--root", metavar="DIR", help="For the command: the devlet that runs on DIR.")
@click.option("-n", "--namespace", metavar="NAME", callback=_value, help="For the command: in this namespace.")
@click.pass_context
def cli(context: click.Context, /, version: bool, context_name: str | None, **shared: str | None) -> None:
    """The device half of a kubelet, standing on its own."""
    _hand_down(context, shared | {"context": context_name})
    if version:
        from devlet.objects.release import DEVLET

        click.echo(f"devlet {DEVLET}")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _hand_down(context: click.Context, shared: Mapping[str, str | None]) -> None:
    """Flags may stand before the command, as in `devlet -n team get pods`: then they are its defaults."""
    given = {name: value for name, value in shared.items() if value is not None}
    command = context.command
    name = context.invoked_subcommand
    if not given or name is None or not isinstance(command, click.Group):
        return
    taken = command.get_command(context, name)
    known = {parameter.name for parameter in taken.params} if taken else given.keys()
    if unknown := sorted(given.keys() - known):
        raise click.UsageError(f"{name} takes no --{unknown[0]}", context)
    context.default_map = {name: given}
