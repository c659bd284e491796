"""Simulated allocation of pods and claims, one after the other, each on the first node where it fits."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

from devlet.alloc.allocator import Allocator, Fit
from devlet.alloc.explain import explain
from devlet.alloc.features import ALL_FEATURES, Rules
from devlet.alloc.results import allocation_documents
from devlet.cli.allocation_input import Objects
from devlet.cli.allocation_subject import Subject, claim_subject, pod_subject
from devlet.control.search_time import FILTER_TIMEOUT, SearchTime
from devlet.errors import DevletError, InvalidInput
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node

__all__ = ["Placement", "Simulation"]


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of a pod or claim, and its claims. If it fits nowhere, `node` is empty and `cause` says why."""

    namespace: str
    name: str
    node: str = ""
    claims: tuple[ResourceClaim, ...] = ()
    cause: str = ""


class Simulation:
    """A run over objects; `settled` counts the pods and claims that already have their devices."""

    def __init__(self, objects: Objects, nodes: Sequence[Node], rules: Rules, seconds: float = FILTER_TIMEOUT) -> None:
        self._objects = objects
        self._nodes = nodes
        self._allocator = Allocator(objects.inventory(hide=not rules.is_reference), rules=rules)
        self._seconds = seconds
        self.settled = 0

    def run(self) -> Iterator[Placement]:
        """Place pods in the order of the files, then claims that no pod uses, and update the objects accordingly."""
        used = set()
        for key, pod in self._objects.pods.items():
            if not pod.spec.resource_claims or pod.is_finished:
                continue
            try:
                subject = pod_subject(self._objects, pod)
            except DevletError as e:
                yield Placement(key[0], f"pod/{key[1]}", cause=str(e))
                continue
            used |= {(key[0], claim.metadata.name) for claim in (*subject.claims, *subject.allocated)}
            yield from self._placed(subject)
        for key in [key for key in self._objects.claims if key not in used]:
            yield from self._placed(claim_subject(self._objects, key))

    def _placed(self, subject: Subject) -> Iterator[Placement]:
        if not subject.claims:
            self.settled += 1
            return
        namespace, name = subject.key[0], subject.name
        nodes = [node for node in self._nodes if not subject.excludes(node)]
        try:
            if fit := self._fit(subject, nodes):
                yield Placement(namespace, name, fit.node.name, tuple(self._take(fit)))
            else:
                yield Placement(namespace, name, cause=self._cause(subject, nodes))
        except InvalidInput as e:
            yield Placement(namespace, name, cause=str(e))

    def _fit(self, subject: Subject, nodes: Sequence[Node]) -> Fit | None:
        wanted = self._allocator.read(subject.claims)
        for node in nodes:
            outcome = self._allocator.allocate_wanted(node, wanted, SearchTime(self._seconds).limits)
            if isinstance(outcome, Fit):
                return outcome
        return None

    def _take(self, fit: Fit) -> Iterator[ResourceClaim]:
        allocations = allocation_documents(fit, ALL_FEATURES, self._allocator.rules, lambda: str(uuid4()))
        for claim, allocation in zip(fit.claims, allocations, strict=True):
            document = self._objects.documents[claim.metadata.namespace, claim.metadata.name]
            status = {**(document.get("status") or {}), "allocation": allocation}
            taken = self._objects.put_claim({**document, "status": status})
            self._allocator.inventory.hold(taken)
            yield taken

    def _cause(self, subject: Subject, nodes: Sequence[Node]) -> str:
        excluded = Counter(reason for node in self._nodes if (reason := subject.excludes(node)))
        if not nodes:
            return "; ".join(f"{reason}: {count} nodes" for reason, count in excluded.most_common()) or "no nodes"
        budget = SearchTime(self._seconds)
        return explain(self._allocator, nodes, subject.claims, limits=lambda: budget.limits).summary
