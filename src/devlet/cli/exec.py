"""`devlet exec`: run a program that knows only /var/lib/kubelet on the root of a devlet."""

from pathlib import Path

import click

from devlet.cli.target import node
from devlet.errors import Forbidden, NotFound
from devlet.runtime import kubelet_paths

# What shells and env(1) return.
CANNOT_RUN, NO_SUCH_PROGRAM = 126, 127

_EXAMPLES = """\b
Examples:
  devlet exec -- ./my-device-plugin --verbose
  devlet exec --root /tmp/node1 -- ls /var/lib/kubelet
"""


@click.command(epilog=_EXAMPLES, context_settings={"allow_interspersed_args": False})
@click.option(
    "--root", metavar="DIR", type=click.Path(path_type=Path), help="Map /var/lib/kubelet to DIR, where a devlet runs."
)
@click.argument("program", metavar="-- PROGRAM [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
def command(root: Path | None, program: tuple[str, ...]) -> int:
    """Run a program for which /var/lib/kubelet is the root of a running devlet.

    Use this for plugins that have the kubelet's paths built in. Only the program and its children see the change;
    nothing changes on the host. This needs root, or a kernel that allows unprivileged user namespaces. The exit code is
    that of the program."""
    if not program or not program[0]:
        raise click.UsageError("no program given: use `devlet exec -- PROGRAM [ARGUMENT]...`")
    socket = node(root)
    socket.check()
    kubelet_paths.enter(socket.root)
    try:
        kubelet_paths.execute(program)
    except NotFound as e:
        return _failed(e, NO_SUCH_PROGRAM)
    except Forbidden as e:
        return _failed(e, CANNOT_RUN)


def _failed(error: Exception, code: int) -> int:
    click.echo(f"error: {error}", err=True)
    return code
