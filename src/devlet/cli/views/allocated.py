"""Claims that have their devices: which, where, since when, for whom, and which others could have been taken."""

from collections.abc import Iterator, Sequence

from devlet.alloc.explain.report import NodeReport, VerdictKind
from devlet.cli.session import Document
from devlet.cli.tables import printable
from devlet.cli.views.claim import devices, nodes
from devlet.cli.views.sheet import INDENT, moment, table
from devlet.objects.subdocuments import at, mappings, text

SHOWN = 8


def lines(
    claims: Sequence[Document], reports: Sequence[NodeReport], now: object, *, wide: bool = False
) -> Iterator[str]:
    """`reports` say what there is for the claims where they are, as if they had nothing yet."""
    for claim in claims:
        yield ""
        yield from _claim(claim, now)
    others = _others(claims, reports)
    if others:
        yield ""
        yield "Passed over (free, and would do as well):"
        kept = others if wide else others[:SHOWN]
        yield from (f"{INDENT}{printable(each)}" for each in kept)
        if len(kept) < len(others):
            yield f"{INDENT}and {len(others) - len(kept)} more: see them with -o wide"


def _claim(claim: Document, now: object) -> Iterator[str]:
    since = moment(at(claim, "status", "allocation", "allocationTimestamp"), now)
    name = f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}"
    yield printable(f"claim {name}: allocated" + (f" since {since}" if since else "") + f", on node: {nodes(claim)}")
    users = [f"{text(user, 'resource')}/{text(user, 'name')}" for user in mappings(claim, "status", "reservedFor")]
    yield printable(f"{INDENT}used by: {', '.join(users) or 'nobody yet'}")
    rows = [[row["request"], row["driver"], row["pool"], row["device"]] for row in devices(claim)]
    yield from (f"{INDENT}{line}" for line in table(["REQUEST", "DRIVER", "POOL", "DEVICE"], rows))


def _others(claims: Sequence[Document], reports: Sequence[NodeReport]) -> list[str]:
    """Devices that some request could have had, and none has."""
    taken = {f"{row['driver']}/{row['pool']}/{row['device']}" for claim in claims for row in devices(claim)}
    could = (VerdictKind.FREE, VerdictKind.CHOSEN)
    found: dict[str, list[str]] = {}
    for report in reports:
        for request in report.requests:
            for verdict in request.verdicts:
                if verdict.kind in could and str(verdict.device) not in taken:
                    found.setdefault(str(verdict.device), []).append(request.name)
    return [f"{device} for request {', '.join(dict.fromkeys(names))}" for device, names in found.items()]
