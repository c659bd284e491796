"""The subcommands of `devlet`. A command's module is imported only when it is run: `--help` needs only the table."""

import importlib
import os
from collections.abc import Mapping

import click

# Name → summary in `devlet --help`. The command is the attribute `command` of the module `devlet.cli.NAME`.
COMMANDS = {
    "apply": "Create or update objects from files.",
    "capture": "Record what a node's drivers publish.",
    "cel": "Evaluate and check CEL device selectors.",
    "checkpoint": "Show, verify, convert and repair device and claim checkpoints.",
    "claim": "Release claims that their drivers do not unprepare.",
    "control": "Run devlet's scheduler and controllers for another cluster.",
    "delete": "Delete objects.",
    "demo": "Show on this machine what devlet does; no root, no network.",
    "describe": "Show details of objects, with their events.",
    "drift": "Compare two cassettes, or a cassette with a running node.",
    "driver": "Create a project for a new driver in Python.",
    "events": "List events, oldest first.",
    "exec": "Run a program that has the kubelet's paths built in.",
    "explain": "Explain why a pod or claim has its devices, or why it has none.",
    "get": "Print one or more objects.",
    "play": "Serve a cassette as virtual drivers.",
    "sanity": "Check that a driver keeps its contract with Kubernetes.",
    "simulate": "Simulate device allocation without changing anything.",
    "store": "Check and repair the database of an embedded cluster.",
    "token": "Create credentials for a driver or another node.",
    "up": "Run the devlet daemon.",
    "version": "Print version information.",
    "wait": "Wait for a condition on objects.",
}
# Keeps gRPC's messages about drivers that exit out of our output. gRPC reads the variable when it is imported.
_QUIET = ("GRPC_VERBOSITY", "ERROR")


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if name != "exec":  # it passes its own environment on to the program
            os.environ.setdefault(*_QUIET)
        command = importlib.import_module(f"devlet.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as e:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f'; did you mean "{close[0]}"?' if close else ""
            raise click.UsageError(f'unknown command "{args[0]}"{hint}', ctx) from e

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def _value(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Strip the `=` of `-n=team`, which kubectl accepts and click reads as `=team`."""
    return value and value.removeprefix("=")


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExample:\n  devlet demo --once",
)
@click.option("--version", is_flag=True, help="Print the version of devlet and exit.")
@click.option("--kubeconfig", metavar="FILE", help="Use the cluster of this kubeconfig.")
@click.option("--context", "context_name", metavar="NAME", help="Use this context of the kubeconfig.")
@click.option("--root", metavar="DIR", help="Use the devlet that runs on DIR.")
@click.option("-n", "--namespace", metavar="NAME", callback=_value, help="Namespace to use.")
@click.pass_context
def cli(context: click.Context, /, version: bool, context_name: str | None, **shared: str | None) -> None:
    """Run device plugins and DRA drivers on one machine: the device half of a kubelet, with a Kubernetes API.

    Start with `devlet demo`, or run `devlet up` and then `devlet get nodes`. Options may be given before or after the
    command; use `devlet COMMAND --help` for the options of a command."""
    _hand_down(context, shared | {"context": context_name})
    if version:
        from devlet.objects.release import DEVLET

        click.echo(f"devlet {DEVLET}")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _hand_down(context: click.Context, shared: Mapping[str, str | None]) -> None:
    """Make flags before the command, as in `devlet -n team get pods`, the defaults of that command."""
    given = {name: value for name, value in shared.items() if value is not None}
    command = context.command
    name = context.invoked_subcommand
    if not given or name is None or not isinstance(command, click.Group):
        return
    taken = command.get_command(context, name)
    known = {parameter.name for parameter in taken.params} if taken else given.keys()
    if unknown := sorted(given.keys() - known):
        raise click.UsageError(f"`devlet {name}` has no option --{unknown[0]}", context)
    context.default_map = {name: given}
