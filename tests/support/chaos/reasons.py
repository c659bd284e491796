"""Checks that each waiting pod has to wait and states the true reason, with a new allocator that knows only the
snapshot. Pure.

Nothing of the scheduler is used here, which an import contract enforces. `node_fit` decides which nodes a pod fits on
apart from devices, and the allocator decides about devices. The message of a pod is compared with the snapshot, number
by number (`texts`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from devlet.alloc import Allocator, Fit, Inventory
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.slice import ResourceSlice
from devlet.objects.values.quantity import ZERO
from tests.support.allocation.rules import requests_of
from tests.support.allocation.selectors import selector_matches
from tests.support.allocation.supply import Offer, holdings, pools
from tests.support.chaos import texts
from tests.support.chaos.node_fit import allocatable, obstacles, requests
from tests.support.chaos.snapshot import OVER, Snapshot, claim_names, consumers, lacks_claims
from tests.support.chaos.texts import DEVICES, Option

__all__ = ["pending", "unexplained"]

NO_NODES = "no nodes available to schedule pods"


def pending(snapshot: Snapshot) -> list[Document]:
    """Pods that have no node."""
    return [pod for pod in _waiting(snapshot) if not pod["spec"].get("nodeName")]


def unexplained(snapshot: Snapshot) -> list[str]:
    """A text for each pod that waits without need, or that says something else than the truth."""
    judge = _Judge(snapshot)
    return [
        f"pod {pod['metadata']['name']} {pod['metadata']['uid']} {text}"
        for pod in _waiting(snapshot)
        for text in (judge.of_placed(pod) if pod["spec"].get("nodeName") else judge.complaints(pod))
    ]


def _waiting(snapshot: Snapshot) -> list[Document]:
    """Those who were put on a node by hand wait for their claims, and have no condition that says so."""
    live = [each for each in snapshot.pods if not (_is_over(each) or each["metadata"].get("deletionTimestamp"))]
    return [pod for pod in live if not pod["spec"].get("nodeName") or lacks_claims(pod, snapshot.claims)]


class _Judge:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._claims = {_key(each): each for each in snapshot.claims}
        self._templates = {_key(each) for each in snapshot.templates}
        self._classes = {each["metadata"]["name"]: each["spec"] for each in snapshot.classes}
        self._extended = {spec.get("extendedResourceName"): name for name, spec in self._classes.items()}
        self._bound = [each for each in snapshot.pods if each["spec"].get("nodeName") and not _is_over(each)]
        self._matches = selector_matches({})
        allocated = [each for each in snapshot.claims if _is_allocated(each)]
        users = {each["metadata"]["uid"] for each in self._bound}
        # Devices that pods without a node have can be taken back: nobody has to wait for them.
        self._in_use = {_key(each) for each in allocated if not users.isdisjoint(consumers(each))}
        self._taken = holdings(allocated, sharing=True)
        self._as_it_is = self._allocator(allocated)
        self._at_best = self._allocator(each for each in allocated if _key(each) in self._in_use)

    def _allocator(self, holding: Iterable[Document]) -> Allocator:
        slices = [view(ResourceSlice, each) for each in self._snapshot.slices]
        inventory = Inventory(slices, [view(DeviceClass, each) for each in self._snapshot.classes])
        for claim in holding:
            inventory.hold(view(ResourceClaim, claim))
        return Allocator(inventory)

    # Whether it has to wait

    def complaints(self, pod: Document) -> Iterator[str]:
        said = _said(pod)
        if unmade := list(self._unmade(pod)):
            yield f"has no claim of template {unmade[0]}; it says: {said!r}"
        elif lacking := [*self._lacking(pod), *self._without_class(pod)]:
            if said not in lacking:
                yield f"says: {said!r}; but: {lacking[0]!r}"
        elif fitting := [node for node in self._snapshot.nodes if self._fits(pod, node)]:
            yield f"fits on {fitting[0]['metadata']['name']}, and waits all the same; it says: {said!r}"
        else:
            yield from (f"says: {said!r}; but {text}" for text in self._untrue(pod, said))

    def of_placed(self, pod: Document) -> Iterator[str]:
        """Its node is asked for devices and nothing else."""
        if pod["status"]["phase"] != "Pending":
            yield "runs, and not all of its claims are reserved for it"
        elif unmade := list(self._unmade(pod)):
            yield f"has no claim of template {unmade[0]}"
        elif not [*self._lacking(pod), *self._without_class(pod)]:
            wanted = [each for each in self._claims_of(pod) if _key(each) not in self._in_use]
            for node in self._snapshot.nodes:
                if node["metadata"]["name"] == pod["spec"]["nodeName"] and self._are_free(self._at_best, node, wanted):
                    yield f"waits on {node['metadata']['name']} for devices that are free"

    def _fits(self, pod: Document, node: Document) -> bool:
        claims = self._claims_of(pod)
        if self._obstacles(pod, node, [each for each in claims if _key(each) in self._in_use]):
            return False
        wanted = [each for each in claims if _key(each) not in self._in_use]
        return self._are_free(self._at_best, node, [*wanted, *self._of_resources(pod, node)])

    def _are_free(self, allocator: Allocator, node: Document, claims: Sequence[Document]) -> bool:
        wanted = [view(ResourceClaim, {**each, "status": {}}) for each in claims]
        return not wanted or isinstance(allocator.allocate(view(Node, node), wanted), Fit)

    # Claims

    def _claims_of(self, pod: Document) -> list[Document]:
        found = ((_namespace(pod), name) for name in claim_names(pod).values() if name)
        return [self._claims[key] for key in dict.fromkeys(found) if key in self._claims]

    def _unmade(self, pod: Document) -> Iterator[str]:
        """Templates that are there, but no claim for it."""
        known, namespace = claim_names(pod), _namespace(pod)
        for entry in pod["spec"].get("resourceClaims") or ():
            name, template = known.get(entry["name"], ""), entry.get("resourceClaimTemplateName")
            if (namespace, template) in self._templates and name is not None and (namespace, name) not in self._claims:
                yield template

    def _lacking(self, pod: Document) -> Iterator[str]:
        known = claim_names(pod)
        for entry in pod["spec"].get("resourceClaims") or ():
            name = known.get(entry["name"], "")
            if name == "":
                yield f'pod "{_namespace(pod)}/{pod["metadata"]["name"]}": ResourceClaim not created yet'
            elif name and (_namespace(pod), name) not in self._claims:
                yield f'could not find ResourceClaim "{_namespace(pod)}/{name}"'

    def _without_class(self, pod: Document) -> Iterator[str]:
        for claim in self._claims_of(pod):
            for _, alternatives in requests_of(claim) if not _is_allocated(claim) else ():
                for name, wanted in alternatives:
                    if wanted["deviceClassName"] not in self._classes:
                        yield f"request {name}: device class {wanted['deviceClassName']} does not exist"

    def _of_resources(self, pod: Document, node: Document) -> list[Document]:
        """The claim behind extended resources that a class offers and the node does not."""
        made = []
        for index, container in enumerate(pod["spec"]["containers"]):
            asked = requests(container)
            for place, resource in enumerate(sorted(asked)):
                if resource in self._offered_by_classes(node):
                    exactly = {"deviceClassName": self._extended[resource], "allocationMode": "ExactCount"}
                    number = asked[resource].exact_int() or 0
                    name = f"container-{index}-request-{place}"
                    made.append({"name": name, "exactly": {**exactly, "count": number}})
        metadata = {"name": "<extended-resources>", "namespace": _namespace(pod), "uid": "none"}
        return [{"metadata": metadata, "spec": {"devices": {"requests": made}}}] if made else []

    def _offered_by_classes(self, node: Document) -> set[str]:
        has = allocatable(node)
        return {name for name in self._extended if name and has.get(name, ZERO) <= ZERO}

    def _obstacles(self, pod: Document, node: Document, allocated: Sequence[Document]) -> list[str]:
        return obstacles(pod, node, allocated, self._bound, self._offered_by_classes(node))

    # What it says

    def _untrue(self, pod: Document, said: str) -> Iterator[str]:
        nodes = self._snapshot.nodes
        stated = texts.read(said)
        if stated is None:
            if nodes or said != NO_NODES:
                yield "that is no reason that is known here"
            return
        if stated.nodes != len(nodes):
            yield f"there are {len(nodes)} nodes"
        allocated = [each for each in self._claims_of(pod) if _is_allocated(each)]
        found = [(node, self._obstacles(pod, node, allocated)) for node in nodes]
        of_nodes = Counter({cause: count for count, cause in stated.causes if not cause.startswith(DEVICES)})
        true = Counter(cause for _, causes in found for cause in causes)
        for cause in sorted(of_nodes.keys() | true.keys()):
            if of_nodes[cause] != true[cause]:
                yield f"there are {true[cause]} nodes with: {cause}"
        of_devices = [(count, cause.removeprefix(DEVICES)) for count, cause in stated.causes if cause not in of_nodes]
        yield from self._untrue_of_devices(pod, [node for node, causes in found if not causes], of_devices)

    def _untrue_of_devices(
        self, pod: Document, nodes: Sequence[Document], stated: Sequence[tuple[int, str]]
    ) -> Iterator[str]:
        """Compare the counts about devices; `nodes` are those that fit the pod apart from devices."""
        if sum(count for count, _ in stated) != len(nodes):
            yield f"{len(nodes)} nodes lack nothing but devices"
        for count, sentence in stated:
            true = sum(self._is_true(sentence, pod, node) for node in nodes)
            if true < count:
                yield f"that is true of {true} nodes: {sentence}"

    def _is_true(self, sentence: str, pod: Document, node: Document) -> bool:
        waiting = [each for each in self._claims_of(pod) if not _is_allocated(each)]
        claims = [*waiting, *self._of_resources(pod, node)]
        offers = [
            offer
            for pool in pools(self._snapshot.slices, node, partitions=True, whole_generation=True)
            for offer in pool.offers
        ]
        options: dict[str, dict[str, Option]] = {}
        for claim in claims:
            for request, alternatives in requests_of(claim):
                options[_called(claim, request, claims)] = {
                    ref.removeprefix(request).removeprefix("/"): self._option(wanted, offers)
                    for ref, wanted in alternatives
                }
        return texts.is_true(sentence, options, partial(self._fit_alone, node, claims))

    def _option(self, wanted: Document, offers: Sequence[Offer]) -> Option:
        of_class = self._selected(offers, _expressions(self._classes[wanted["deviceClassName"]]))
        selectors = _expressions(wanted)
        matching = self._selected(of_class, selectors)
        others = [each for each in of_class if each not in matching]
        return Option(
            number=wanted.get("count", 1),
            class_name=wanted["deviceClassName"],
            selectors=tuple(" ".join(each.split()) for each in selectors),
            here=len(offers),
            of_class=len(of_class),
            matching=frozenset(each.key for each in matching),
            free=frozenset(each.key for each in matching if not self._taken.taken(each.key)),
            is_false=lambda expression: len(self._selected(others, [expression])) < len(others),
        )

    def _selected(self, offers: Sequence[Offer], expressions: Sequence[str]) -> list[Offer]:
        return [
            each
            for each in offers
            if all(self._matches(expression, each.device, each.pool.driver) for expression in expressions)
        ]

    def _fit_alone(self, node: Document, claims: Sequence[Document], names: Sequence[str]) -> bool:
        """Whether the allocator has devices for these requests, as things are."""
        fewer = []
        for claim in claims:
            devices = claim["spec"]["devices"]
            kept = [each for each in devices["requests"] if _called(claim, each["name"], claims) in names]
            fewer.append({**claim, "spec": {"devices": {**devices, "requests": kept}}})
        return self._are_free(self._as_it_is, node, fewer)


def _called(claim: Document, request: str, claims: Sequence[Document]) -> str:
    namespace, name = _key(claim)
    return f"claim {namespace}/{name}, request {request}" if len(claims) > 1 else f"request {request}"


def _expressions(spec: Document) -> list[str]:
    return [each["cel"]["expression"] for each in spec.get("selectors") or ()]


def _said(pod: Document) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    found = [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]
    return found[0].get("message", "") if found else ""


def _is_over(pod: Document) -> bool:
    return (pod.get("status") or {}).get("phase") in OVER


def _is_allocated(claim: Document) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))


def _namespace(pod: Document) -> str:
    return _key(pod)[0]


def _key(document: Document) -> tuple[str, str]:
    return document["metadata"]["namespace"], document["metadata"]["name"]
