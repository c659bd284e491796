"""The programs `devlet` and `kubectl-devlet`: how errors are printed, and the exit code.

Nothing is imported here that a simple `get` does not need: click alone takes as long to load as the whole of kubectl.
"""

import errno
import os
import sys
from collections.abc import Iterator, Sequence

from devlet.cli.terminal import protect
from devlet.errors import DevletError

PROGRAM = "devlet"
KUBECTL_PLUGIN = "kubectl devlet"


def run(arguments: Sequence[str], program: str = PROGRAM) -> int:
    """Run one command line and say its exit code. An error that is not ours passes: it is a bug."""
    try:
        result = _run(arguments, program)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:  # nobody reads any more
        _discard_output()
        return 1
    except OSError as e:
        if e.errno != errno.ENOSPC:
            raise
        _discard_output()
        return _print(f"error: {e.filename or 'standard output'}: {e.strerror}")
    except KeyboardInterrupt:
        return 130
    except (DevletError, BaseExceptionGroup) as e:
        return _report(e)


def _discard_output() -> None:
    """Python would complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    protect()
    sys.exit(run(sys.argv[1:]))


def kubectl_plugin() -> None:
    """The program `kubectl-devlet`, which kubectl runs for `kubectl devlet …`: KUBECONFIG counts as for kubectl."""
    protect()
    sys.exit(run(sys.argv[1:], KUBECTL_PLUGIN))


def _run(arguments: Sequence[str], program: str) -> object:
    if "get" in arguments:
        from devlet.cli import quick

        if command := quick.parse(arguments, program):
            return command.run()

    import click

    from devlet.cli.commands import cli

    try:
        return cli.main(list(arguments), prog_name=program, standalone_mode=False)
    except click.UsageError as e:
        where = [f"see: {e.ctx.command_path} --help"] if e.ctx else []
        return _print(f"error: {e.format_message()}", *where)
    except click.ClickException as e:
        return _print(f"error: {e.format_message()}")
    except click.Abort:
        return 130


def _report(error: BaseException) -> int:
    """A part that dies arrives in nested groups; what counts are the errors at the leaves."""
    leaves = list(_leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        return 130
    if bugs := [leaf for leaf in leaves if not isinstance(leaf, DevletError)]:
        raise bugs[0] if len(leaves) == 1 else error  # Python cuts off groups that are deeply nested
    return _print(*dict.fromkeys(f"error: {leaf}" for leaf in leaves))


def _print(*lines: str) -> int:
    sys.stdout.flush()
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return 1


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
