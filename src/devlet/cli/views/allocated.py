"""Allocated claims: their devices, nodes and users, free devices that were passed over, and overlaps with others."""

from collections.abc import Iterator, Sequence

from devlet.alloc.explain.report import NodeReport, VerdictKind
from devlet.cli.session import Document
from devlet.cli.tables import printable
from devlet.cli.views.claim import devices, nodes
from devlet.cli.views.sheet import INDENT, moment, table
from devlet.objects.claims.overlaps import Overlap
from devlet.objects.subdocuments import at, mappings, text

SHOWN = 8

_ADVICE = (
    "Two schedulers have allocated the same device. A node prepares it for one claim and refuses the others.",
    "To free the device, delete the pods of all but one of these claims, and the claims that no pod uses.",
    "To prevent overlaps, let a single scheduler handle all pods whose claims can get these devices.",
)


def lines(
    claims: Sequence[Document], reports: Sequence[NodeReport], now: object, *, wide: bool = False
) -> Iterator[str]:
    """Describe the claims. `reports` cover the same claims on their node, as if they were unallocated."""
    for claim in claims:
        yield ""
        yield from _claim(claim, now)
    others = _others(claims, reports)
    if others:
        yield ""
        yield "Other free devices that match:"
        kept = others if wide else others[:SHOWN]
        yield from (f"{INDENT}{printable(each)}" for each in kept)
        if len(kept) < len(others):
            yield f"{INDENT}and {len(others) - len(kept)} more: use -o wide to see them"


def _claim(claim: Document, now: object) -> Iterator[str]:
    since = moment(at(claim, "status", "allocation", "allocationTimestamp"), now)
    name = f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}"
    yield printable(f"claim {name}: allocated" + (f" since {since}" if since else "") + f", on node: {nodes(claim)}")
    users = [f"{text(user, 'resource')}/{text(user, 'name')}" for user in mappings(claim, "status", "reservedFor")]
    yield printable(f"{INDENT}used by: {', '.join(users) or '<none>'}")
    rows = [[row["request"], row["driver"], row["pool"], row["device"]] for row in devices(claim)]
    yield from (f"{INDENT}{line}" for line in table(["REQUEST", "DRIVER", "POOL", "DEVICE"], rows))


def _others(claims: Sequence[Document], reports: Sequence[NodeReport]) -> list[str]:
    """Return the devices that match a request and are not allocated to these claims."""
    taken = {f"{row['driver']}/{row['pool']}/{row['device']}" for claim in claims for row in devices(claim)}
    could = (VerdictKind.FREE, VerdictKind.CHOSEN)
    found: dict[str, list[str]] = {}
    for report in reports:
        for request in report.requests:
            for verdict in request.verdicts:
                if verdict.kind in could and str(verdict.device) not in taken:
                    found.setdefault(str(verdict.device), []).append(request.name)
    return [f"{device} for request {', '.join(dict.fromkeys(names))}" for device, names in found.items()]


def overlap_lines(overlaps: Sequence[Overlap]) -> Iterator[str]:
    """Describe claims that together hold more of a device than exists, and what to do about it."""
    yield ""
    yield "Overlaps:"
    yield from (f"{INDENT}{printable(each.text)}" for each in overlaps)
    yield from (f"{INDENT}{line}" for line in _ADVICE)
