"""Choose the node of a pod and the devices of its claims there.

The time limit applies to each node. After a search that ran out of time, the caller may repeat it with more. `reasons`
finds out why there is no place for a pod.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

import msgspec

from devlet.alloc import Fit, Limits, Wanted, allocation_documents
from devlet.alloc.placement import feasible, nodes_to_find
from devlet.control.scheduler import fit
from devlet.control.scheduler.devices import Devices
from devlet.control.scheduler.extended_resources import UNSTORED_NAME, ExtendedClaim
from devlet.control.scheduler.nodes import NodeEntry, NodeTable
from devlet.control.scheduler.pod_affinity import TopologyFilter
from devlet.control.scheduler.subject import Subject
from devlet.control.search_time import SearchTime
from devlet.errors import InvalidInput
from devlet.objects.claims.nodes import is_usable_on
from devlet.objects.documents import Document
from devlet.objects.identifiers import NodeName, ObjectKey, ResourceName
from devlet.objects.types.claim import DeviceResult, ResourceClaim

__all__ = ["Assignment", "Granted", "Placer", "obstacles"]

SUBREQUESTS_MAX = 8  # of a prioritized list


@dataclass(frozen=True, slots=True)
class Granted:
    """The devices for an unallocated claim: the allocation as it is written, and its results as they are held."""

    claim: ResourceClaim
    allocation: Document
    results: tuple[DeviceResult, ...]

    @property
    def key(self) -> ObjectKey:
        """The key of the claim while it is in flight. A claim that is not created yet has no name of its own: its UID,
        which contains the pod's UID, stands for it."""
        metadata = self.claim.metadata
        return metadata.namespace, metadata.uid if metadata.name == UNSTORED_NAME else metadata.name


@dataclass(frozen=True, slots=True)
class Assignment:
    """A node and devices. `extended` is the claim to be created for extended resources, the last of `granted`."""

    node: NodeName
    granted: tuple[Granted, ...] = ()
    extended: ExtendedClaim | None = None


@dataclass(frozen=True, slots=True)
class _Offer:
    """What to search for on the nodes where DRA provides the same extended resources."""

    wanted: Wanted | None
    extended: ExtendedClaim | None
    admits: Callable[[int], bool]


class Placer:
    """Searches begin after the node where the last one ended, so that pods are spread."""

    def __init__(self, table: NodeTable, devices: Devices, candidates: int) -> None:
        self._table = table
        self._devices = devices
        self._candidates = candidates
        self._start = 0

    def place(self, subject: Subject, time: SearchTime) -> Assignment | None:
        """Return None if no node fits, or if time is up; `time.exceeded` tells which."""
        for offer in self._offers(subject, time):
            if assignment := self._best(subject, offer, time.limits):
                return assignment
        return None

    def _offers(self, subject: Subject, time: SearchTime) -> Iterator[_Offer]:
        if not subject.extended:
            yield self._offer(subject, time, None)
            return
        for provided in self._provided(subject):
            yield self._offer(subject, time, subject.extended_claim(provided), provided)

    def _provided(self, subject: Subject) -> Sequence[frozenset[ResourceName]]:
        """Return the different sets of the pod's extended resources that DRA provides on nodes, the smallest first."""
        found = dict.fromkeys(subject.provided_on(entry.view) for entry in self._table.entries)
        return sorted(found, key=len)

    def _offer(
        self,
        subject: Subject,
        time: SearchTime,
        extended: ExtendedClaim | None,
        provided: frozenset[ResourceName] | None = None,
    ) -> _Offer:
        claims = [*subject.waiting, *([extended.claim] if extended else [])]
        wanted = self._devices.allocator.read(claims) if claims else None
        entries, topology = self._table.entries, self._table.topology_filter(subject.needs.affinity)

        def admits(index: int) -> bool:
            entry = entries[index]
            time.restart()
            if provided is not None and subject.provided_on(entry.view) != provided:
                return False
            return not obstacles(subject, entry, topology)

        return _Offer(wanted, extended, admits)

    def _best(self, subject: Subject, offer: _Offer, limits: Limits) -> Assignment | None:
        """Return an assignment to the best of the feasible nodes. A node is excluded if an allocation there cannot be
        written, for example because node selectors cannot be merged."""
        found = self._feasible(subject, offer, limits)
        ranked = sorted(found, key=lambda i: self._rank(subject, offer, i, limits), reverse=True)
        for index in ranked:
            entry = self._table.entries[index]
            try:
                granted = self._grant(entry, offer, limits)
            except InvalidInput:
                continue
            if granted is not None:
                return Assignment(entry.name, granted, offer.extended)
        return None

    def _feasible(self, subject: Subject, offer: _Offer, limits: Limits) -> list[int]:
        count = len(self._table.entries)
        if not count:
            return []
        enough = nodes_to_find(count) if self._has_preferences(subject, offer) else min(self._candidates, count)
        if offer.wanted is not None:
            found = feasible(self._table.scan, offer.wanted, self._start, enough, limits, offer.admits)
        else:
            found = self._around(enough, offer.admits)
        if len(found) == enough:
            self._start = (found[-1] + 1) % count
        return found

    def _around(self, enough: int, admits: Callable[[int], bool]) -> list[int]:
        count, found = len(self._table.entries), list[int]()
        for offset in range(count):
            if admits(index := (self._start + offset) % count):
                found.append(index)
                if len(found) == enough:
                    break
        return found

    def _has_preferences(self, subject: Subject, offer: _Offer) -> bool:
        """Return True if the pod prefers some nodes, apart from how full they are."""
        return subject.needs.has_preferences or bool(offer.wanted and _has_alternatives(offer.wanted))

    def _rank(self, subject: Subject, offer: _Offer, index: int, limits: Limits) -> tuple[int, int]:
        entry = self._table.entries[index]
        score = fit.score(subject.needs, entry.view, entry.use)
        if not self._has_preferences(subject, offer):
            return -fit.discouraged(subject.needs, entry.view), score
        preferred = self._alternatives(offer, entry, limits) + fit.preference(subject.needs, entry.view)
        return preferred - fit.discouraged(subject.needs, entry.view), score

    def _alternatives(self, offer: _Offer, entry: NodeEntry, limits: Limits) -> int:
        """Return a score that is higher the earlier the chosen alternatives are in their lists."""
        if offer.wanted is None or not _has_alternatives(offer.wanted):
            return 0
        outcome = self._devices.allocator.allocate_wanted(entry.node, offer.wanted, limits)
        if not isinstance(outcome, Fit):
            return 0
        chosen = {each.step.full_name for claim in outcome.chosen for each in claim}
        return sum(
            SUBREQUESTS_MAX - next((i for i, each in enumerate(request.alternatives) if each.full_name in chosen), 0)
            for requests in offer.wanted.requests
            for request in requests
            if request.is_list
        )

    def _grant(self, entry: NodeEntry, offer: _Offer, limits: Limits) -> tuple[Granted, ...] | None:
        if offer.wanted is None:
            return ()
        allocator = self._devices.allocator
        outcome = allocator.allocate_wanted(entry.node, offer.wanted, limits)
        if not isinstance(outcome, Fit):
            return None
        documents = allocation_documents(outcome, allocator.features, allocator.rules, lambda: str(uuid4()))
        return tuple(
            Granted(claim, document, _results(document))
            for claim, document in zip(outcome.claims, documents, strict=True)
        )


def obstacles(subject: Subject, entry: NodeEntry, topology: TopologyFilter | None) -> tuple[str, ...]:
    """Return why the node is excluded, whatever devices are free on it. For a pod that already has its node, only the
    claims are checked: whether the pod fits is decided by the node."""
    if subject.node and subject.node != entry.name:
        return (fit.OTHER_NODE,)
    if not subject.node and (reason := fit.mismatch(subject.needs, entry.view)):
        return (reason,)
    for claim in subject.allocated:
        if not is_usable_on(claim, entry.name, entry.view.labels):
            return (f"the devices of claim {claim.name} cannot be used there",)
    if subject.node:
        return ()
    lacking = fit.lacking(subject.needs, entry.view, entry.use, subject.provided_on(entry.view))
    if lacking or topology is None:
        return lacking
    return (reason,) if (reason := topology.obstacle(entry.view.labels)) else ()


def _results(allocation: Document) -> tuple[DeviceResult, ...]:
    return msgspec.convert(allocation["devices"].get("results") or (), tuple[DeviceResult, ...])


def _has_alternatives(wanted: Wanted) -> bool:
    return any(request.is_list for requests in wanted.requests for request in requests)
