"""Claims that together hold more of a device than there is, and what to do about it."""

from collections.abc import Iterator, Sequence

from devlet.cli.tables import printable
from devlet.cli.views.sheet import INDENT
from devlet.objects.claims.overlaps import Overlap

__all__ = ["lines"]

_ADVICE = (
    "Two schedulers gave the same device away. A node prepares it for one claim and refuses the others.",
    "Delete the pods of all claims but one, and claims that no pod uses: that gives the device back.",
    "Let only one scheduler have the pods whose claims can get these devices.",
)


def lines(overlaps: Sequence[Overlap]) -> Iterator[str]:
    yield ""
    yield "Overlaps:"
    yield from (f"{INDENT}{printable(each.text)}" for each in overlaps)
    yield from (f"{INDENT}{line}" for line in _ADVICE)
