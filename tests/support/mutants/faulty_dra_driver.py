"""The sound DRA driver with one bug, which is named after the check of `devlet.sanity` that is to find it.

    python -m tests.support.mutants.faulty_dra_driver --bug DRA-CDI-5 --root R --cdi C --kubeconfig K --node N \
        --instance I

So each check is shown to see what it is for. Bugs are mistakes that drivers have: state that is kept in memory only,
files that are written where others read them, names that are taken for claims. A bug is a class that changes as little
as it can.
"""

from collections.abc import Sequence

import anyio

from devlet.kit import facts
from tests.support.mutants import (
    dra_batches,
    dra_claims,
    dra_files,
    dra_health,
    dra_lives,
    dra_registrations,
    dra_slices,
    dra_unprepare,
)
from tests.support.mutants.sound_dra_driver import SoundDraDriver, arguments, run

__all__ = ["BUGS", "main"]

BUGS: dict[str, type[SoundDraDriver]] = {
    **dra_registrations.BUGS,
    **dra_slices.BUGS,
    **dra_claims.BUGS,
    **dra_batches.BUGS,
    **dra_unprepare.BUGS,
    **dra_files.BUGS,
    **dra_health.BUGS,
    **dra_lives.BUGS,
}
_ALL = BUGS | dra_claims.NO_REFUSALS


def main(words: Sequence[str] | None = None) -> None:
    parser = arguments()
    parser.add_argument("--bug", choices=sorted(_ALL), required=True)
    given = parser.parse_args(words)
    facts.configure("text")
    anyio.run(run, _ALL[given.bug](given.root, given.cdi, given.kubeconfig, given.node, given.instance))


if __name__ == "__main__":
    main()
