"""The sound device plugin with one planted bug, named after the check of `devlet.sanity` that must find it.

    python -m tests.support.mutants.faulty_device_plugin --bug DP-LIST-4 --directory D --cdi C

This shows that each check finds what it is for. The bugs are mistakes that real plugins make: threads that are never
freed, random IDs, sockets left behind, streams that end. Each bug is a class that changes as little as possible, and
its docstring says what it does wrong.
"""

from collections.abc import Sequence

import anyio

from devlet.kit import facts
from tests.support.mutants import answers, lists, lives, registrations
from tests.support.mutants.sound_device_plugin import SoundDevicePlugin, arguments, run

__all__ = ["BUGS", "main"]

BUGS: dict[str, type[SoundDevicePlugin]] = {
    **registrations.BUGS,
    **lists.BUGS,
    **answers.BUGS,
    **lives.BUGS,
}
_ALL = BUGS | answers.NO_REFUSALS


def main(words: Sequence[str] | None = None) -> None:
    parser = arguments()
    parser.add_argument("--bug", choices=sorted(_ALL), required=True)
    given = parser.parse_args(words)
    facts.configure("text")
    kind = _ALL[given.bug]
    anyio.run(run, lambda: kind(given.directory, given.cdi, registry=given.registry))


if __name__ == "__main__":
    main()
