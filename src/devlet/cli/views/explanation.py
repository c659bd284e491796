"""An explanation as text: the verdict, the conflict, the devices of each request by reason, and what would help."""

from collections.abc import Iterator, Sequence

from devlet.alloc.explain.report import Explanation, NodeReport, RequestReport, Verdict, VerdictKind
from devlet.cli.tables import Layout, printable
from devlet.cli.views.sheet import INDENT

SHOWN = 3  # devices of one reason, and changes, except with -o wide
LONGEST = 160  # characters of a cell

_WORDS = {
    VerdictKind.CHOSEN: "chosen",
    VerdictKind.FREE: "free",
    VerdictKind.POOL_OBSOLETE: "in an old pool",
    VerdictKind.POOL_INCOMPLETE: "in an incomplete pool",
    VerdictKind.POOL_INVALID: "in an invalid pool",
    VerdictKind.OTHER_NODE: "of another node",
    VerdictKind.BINDING_CONDITIONS: "has binding conditions",
    VerdictKind.CLASS_SELECTOR: "not of the class",
    VerdictKind.REQUEST_SELECTOR: "not selected",
    VerdictKind.SELECTOR_ERROR: "selector fails",
    VerdictKind.IN_USE: "in use",
    VerdictKind.TAINT: "tainted",
    VerdictKind.CAPACITY: "too little capacity",
    VerdictKind.COUNTERS: "counters used up",
    VerdictKind.CONSTRAINT: "constraint",
}

_ORDER = [kind for kind in VerdictKind if kind is not VerdictKind.OTHER_NODE] + [VerdictKind.OTHER_NODE]


def lines(
    subject: str, found: Explanation, nodes: int, *, wide: bool = False, all_nodes: bool = False
) -> Iterator[str]:
    """Describe an explanation over `nodes` nodes, the closest one first. With `wide`, each device gets its own line."""
    yield printable(f"{subject} {'fits' if found.fits else 'does not fit'}: {found.summary}")
    shown = found.nodes if all_nodes else found.nodes[:1]
    for report in shown:
        yield ""
        yield from _node(report, wide)
    if found.changes:
        yield ""
        changes = [_change(change.text, change.node if nodes > 1 else "") for change in found.changes]
        yield from _some("What would help:", changes, wide)
    if len(shown) < nodes:
        yield ""
        which = "" if found.fits else "This is the node that comes closest. "
        yield f"{which}Use --all-nodes to see {nodes - len(shown)} more."


def _change(text: str, node: str) -> str:
    return f"{text} (node {node})" if node and node not in text else text


def _some(title: str, texts: Sequence[str], wide: bool) -> Iterator[str]:
    yield title
    kept = texts if wide else texts[:SHOWN]
    yield from (f"{INDENT}{printable(text)}" for text in kept)
    if len(kept) < len(texts):
        yield f"{INDENT}and {len(texts) - len(kept)} more: use -o wide to see them"


def _node(report: NodeReport, wide: bool) -> Iterator[str]:
    yield printable(f"Node {report.node}: {report.text}")
    if report.conflict and report.conflict.text not in report.text:
        yield f"{INDENT}{printable(report.conflict.text)}"
    for request in report.requests:
        yield from (f"{INDENT}{line}" for line in _request(request, wide))


def _request(request: RequestReport, wide: bool) -> Iterator[str]:
    yield printable(f"request {request.name} of claim {request.claim}: {request.wanted}")
    rows = _each(request.verdicts) if wide else _grouped(request)
    if not rows:
        yield f"{INDENT}no devices"
        return
    titles = ["DEVICE", "VERDICT", "WHY"] if wide else ["DEVICES", "VERDICT", "WHICH", "WHY"]
    for line in Layout().lines([titles, *rows]):
        yield f"{INDENT}{line.rstrip()}"


def _each(verdicts: Sequence[Verdict]) -> list[list[str]]:
    return [[printable(str(v.device)), _WORDS[v.kind], _clipped(_why(v), 10 * LONGEST)] for v in verdicts]


def _grouped(request: RequestReport) -> list[list[str]]:
    groups: dict[tuple[VerdictKind, str], list[Verdict]] = {}
    for verdict in request.verdicts:
        groups.setdefault((verdict.kind, _reason(verdict)), []).append(verdict)
    if request.elsewhere:
        groups.setdefault((VerdictKind.OTHER_NODE, ""), [])
    rows = []
    for (kind, reason), verdicts in sorted(groups.items(), key=lambda group: _ORDER.index(group[0][0])):
        elsewhere = request.elsewhere if kind is VerdictKind.OTHER_NODE else 0
        details = {_why(verdict) for verdict in verdicts}
        why = details.pop() if len(details) == 1 else reason
        row = [str(len(verdicts) + elsewhere), _WORDS[kind], _names(verdicts, elsewhere), _clipped(why, LONGEST)]
        rows.append(row)
    return rows


def _reason(verdict: Verdict) -> str:
    """Return what the verdicts of one row have in common; values and nodes of the devices may differ."""
    if verdict.kind is VerdictKind.OTHER_NODE:
        return ""
    if verdict.part and verdict.kind is not VerdictKind.SELECTOR_ERROR:
        return f"{verdict.part} is false"
    return _why(verdict)


def _why(verdict: Verdict) -> str:
    if not verdict.part:
        return verdict.detail
    if verdict.kind is VerdictKind.SELECTOR_ERROR:
        return f"{verdict.detail}, in {verdict.part}"
    return f"{verdict.part} is false" + (f" ({verdict.detail})" if verdict.detail else "")


def _names(verdicts: Sequence[Verdict], elsewhere: int) -> str:
    names = [verdict.device.device for verdict in verdicts[:SHOWN]]
    more = len(verdicts) + elsewhere - len(names)
    return printable(", ".join(names)) + (f" and {more} more" if more and names else "")


def _clipped(text: str, longest: int) -> str:
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
