"""The `devlet` command: its sub-commands, how errors are printed, and the exit code.

Nothing but click is imported before a sub-command is chosen; the table below carries what `devlet --help` needs.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence

import click

from devlet.errors import DevletError

# Name → what `devlet --help` says. The command is the attribute `command` of the module `devlet.cli.NAME`.
COMMANDS = {
    "apply": "Create or change objects from files.",
    "delete": "Delete objects.",
    "demo": "Show on this machine what devlet does; no root, no network.",
    "describe": "Show objects in detail, with their events.",
    "events": "List events, oldest first.",
    "get": "Print objects.",
    "up": "Run the daemon.",
    "version": "Print the version.",
    "wait": "Wait for a condition of objects.",
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"devlet.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExample:\n  devlet demo --once",
)
@click.option("--version", is_flag=True, help="Print the version of devlet and exit.")
@click.pass_context
def cli(context: click.Context, version: bool) -> None:
    """The device half of a kubelet, standing on its own."""
    if version:
        from devlet.objects.release import DEVLET

        click.echo(f"devlet {DEVLET}")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command line and say its exit code. An error that is not ours passes: it is a bug."""
    try:
        result = cli.main(list(arguments), prog_name="devlet", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.ClickException as e:
        return _usage_error(e)
    except BrokenPipeError:
        # Nobody reads any more. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (DevletError, BaseExceptionGroup) as e:
        return _report(e)


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def _usage_error(error: click.ClickException) -> int:
    click.echo(f"error: {error.format_message()}", err=True)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(f"see: {error.ctx.command_path} --help", err=True)
    return 1


def _report(error: BaseException) -> int:
    """A part that dies arrives in nested groups; what counts are the errors at the leaves."""
    leaves = list(_leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        return 130
    if not all(isinstance(leaf, DevletError) for leaf in leaves):
        raise error
    for text in dict.fromkeys(str(leaf) for leaf in leaves):
        click.echo(f"error: {text}", err=True)
    return 1


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
