"""The sound DRA driver with one bug, which is named after the check of `devlet.sanity` that is to find it.

    python -m devlet.testing.faulty_dra_driver --bug DRA-CDI-5 --root R --cdi C --kubeconfig K --node N --instance I

So each check is shown to see what it is for. Bugs are mistakes that drivers have: state that is kept in memory only,
files that are written where others read them, names that are taken for claims. A bug is a class that changes as little
as it can.
"""

from collections.abc import Sequence

import anyio

from devlet.kit import facts
from devlet.testing import (
    faulty_dra_claims,
    faulty_dra_files,
    faulty_dra_health,
    faulty_dra_lives,
    faulty_dra_registrations,
    faulty_dra_slices,
)
from devlet.testing.sound_dra_driver import SoundDraDriver, arguments, run

__all__ = ["BUGS", "main"]

BUGS: dict[str, type[SoundDraDriver]] = {
    **faulty_dra_registrations.BUGS,
    **faulty_dra_slices.BUGS,
    **faulty_dra_claims.BUGS,
    **faulty_dra_files.BUGS,
    **faulty_dra_health.BUGS,
    **faulty_dra_lives.BUGS,
}
_ALL = BUGS | faulty_dra_claims.NO_REFUSALS


def main(words: Sequence[str] | None = None) -> None:
    parser = arguments()
    parser.add_argument("--bug", choices=sorted(_ALL), required=True)
    given = parser.parse_args(words)
    facts.configure("text")
    anyio.run(run, _ALL[given.bug](given.root, given.cdi, given.kubeconfig, given.node, given.instance))


if __name__ == "__main__":
    main()
