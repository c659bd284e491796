"""Why a pod has no node, in one line: how many nodes each reason excludes, in the form of kube-scheduler.

    0/3 nodes are available: 2 Insufficient cpu; 1 node(s): request gpu needs 2 devices, 1 is free of 4 that match

The reasons about devices come from `alloc.explain`, which shares its parts with the search.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from devlet.alloc.explain import explain
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.nodes import NodeEntry, NodeTable
from devlet.control.scheduler.placing import obstacles
from devlet.control.scheduler.subject import Subject
from devlet.control.search_time import SearchTime
from devlet.objects.identifiers import DriverName
from devlet.objects.types.claim import ResourceClaim

__all__ = ["LENGTH_MAX", "NO_NODES", "hidden", "reason"]

NO_NODES = "no nodes available to schedule pods"
REASONS_MAX = 8
DRIVERS_MAX = 3
LENGTH_MAX = 1000  # an event's message may have 1,024 characters


def reason(subject: Subject, table: NodeTable, devices: Devices, seconds: float) -> str:
    """Explain why no node fits the pod; empty if one does by now."""
    entries = table.entries
    if not entries:
        return NO_NODES
    counts: Counter[str] = Counter()
    possible: list[NodeEntry] = []
    topology = table.topology_filter(subject.needs.affinity)
    for entry in entries:
        found = obstacles(subject, entry, topology)
        counts.update(found)
        if not found:
            possible.append(entry)
    for claims, group in _groups(subject, possible):
        causes = _causes(claims, group, devices, seconds)
        if causes is None:
            return ""
        counts.update(causes)
    return _text(len(entries), counts)


def hidden(drivers: Mapping[DriverName, Collection[str]]) -> str:
    """Return which drivers are gone from which of their nodes, so that their devices are not offered."""
    shown = [f"{name} on {_some(nodes)}" for name, nodes in sorted(drivers.items())[:DRIVERS_MAX]]
    more = f" and {len(drivers) - DRIVERS_MAX} more" if len(drivers) > DRIVERS_MAX else ""
    return f"drivers that are not connected: {', '.join(shown)}{more}"


def _some(nodes: Collection[str]) -> str:
    return min(nodes) if len(nodes) == 1 else f"{len(nodes)} nodes"


def _groups(subject: Subject, entries: Sequence[NodeEntry]) -> Iterator[tuple[list[ResourceClaim], list[NodeEntry]]]:
    """Group nodes by the claims to be allocated there: DRA may provide different extended resources on each."""
    groups: dict[frozenset[str], list[NodeEntry]] = {}
    for entry in entries:
        groups.setdefault(frozenset(subject.provided_on(entry.view)), []).append(entry)
    for group in groups.values():
        extended = subject.extended_claim(subject.provided_on(group[0].view)) if subject.extended else None
        yield [*subject.waiting, *([extended.claim] if extended else [])], group


def _causes(
    claims: Sequence[ResourceClaim], entries: Sequence[NodeEntry], devices: Devices, seconds: float
) -> Counter[str] | None:
    """Return why the claims do not fit on the nodes; None if they all fit on one."""
    if not claims:
        return None
    time = SearchTime(seconds)
    found = explain(devices.allocator, [entry.node for entry in entries], claims, limits=lambda: time.limits)
    if found.fits:
        return None
    only = {report.conflict.cause: report.text for report in found.nodes if report.conflict}
    counts: Counter[str] = Counter()
    for cause, number in found.causes:
        text = only.get(cause, cause) if number == 1 else cause  # details differ from node to node
        counts[f"node(s): {(text or 'cannot allocate all claims').splitlines()[0]}"] += number
    return counts


def _text(nodes: int, counts: Counter[str]) -> str:
    shown = [f"{number} {cause}" for cause, number in counts.most_common(REASONS_MAX)]
    rest = sum(counts.values()) - sum(number for _, number in counts.most_common(REASONS_MAX))
    text = f"0/{nodes} nodes are available: {'; '.join([*shown, f'{rest} for other reasons'] if rest else shown)}"
    return text if len(text) <= LENGTH_MAX else f"{text[: LENGTH_MAX - 1]}…"
