"""The programs `devlet` and `kubectl-devlet`: error output and exit codes.

Imports only what a simple `get` needs: loading click alone takes as long as starting kubectl.
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
    """Run one command line and return its exit code. Errors that are not ours are bugs and propagate."""
    try:
        result = _run(arguments, program)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:  # the reader of our output is gone
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
    """Redirect standard output to /dev/null, because Python flushes it at exit and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    protect()
    sys.exit(run(sys.argv[1:]))


def kubectl_plugin() -> None:
    """Run `kubectl-devlet`, the program behind `kubectl devlet …`, which uses KUBECONFIG as kubectl does."""
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
        hint = [f"See '{e.ctx.command_path} --help' for usage."] if e.ctx else []
        return _print(f"error: {e.format_message()}", *hint)
    except click.ClickException as e:
        return _print(f"error: {e.format_message()}")
    except click.Abort:
        return 130


def _report(error: BaseException) -> int:
    """Print the errors inside nested groups, in which the failure of a task group arrives."""
    leaves = list(_leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        return 130
    if bugs := [leaf for leaf in leaves if not isinstance(leaf, DevletError)]:
        raise bugs[0] if len(leaves) == 1 else error  # tracebacks of deeply nested groups are cut off
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
