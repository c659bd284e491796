"""The sound DRA driver with one planted bug, named after the check of `devlet.sanity` that must find it.

    python -m tests.support.mutants.faulty_dra_driver --bug DRA-CDI-5 --root R --cdi C --kubeconfig K --node N \
        --instance I

This shows that each check finds what it is for. The bugs are mistakes that real drivers make: state kept only in
memory, files written in place, claims identified by name. Each bug is a class that changes as little as possible, and
its docstring says what it does wrong.
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
