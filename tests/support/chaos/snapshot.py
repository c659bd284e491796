"""Everything that a cluster and its nodes say about pods, claims and devices, at a moment when nothing changes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from devlet.cluster.client import Cluster
from devlet.objects.documents import Document, view
from devlet.objects.kinds import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from devlet.objects.node_drivers import is_of_gone_driver
from devlet.objects.types.node import Node
from devlet.objects.types.slice import ResourceSlice
from devlet.state.claim_entry import ClaimEntry
from devlet.state.device_entry import Entry
from tests.support.chaos.doubles import pod_resources
from tests.support.peers.peer_node import PeerNode

__all__ = ["OVER", "NodeState", "Snapshot", "claim_names", "consumers", "lacks_claims", "take"]

CALM = 0.3  # seconds without a change
OVER = ("Succeeded", "Failed")  # phases of pods


@dataclass(frozen=True, slots=True)
class NodeState:
    """`prepared` and `devices` are its checkpoints, `specs` the names of claims' CDI specs, `drivers` the UIDs of
    claims that drivers have written down; `holders` are pods, by UID, that have devices according to its views, and
    `listed` are the names of those in PodResources."""

    name: str
    prepared: tuple[ClaimEntry, ...] = ()
    devices: tuple[Entry, ...] = ()
    specs: tuple[str, ...] = ()
    drivers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    holders: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Documents, and what nodes have."""

    pods: tuple[Document, ...] = ()
    claims: tuple[Document, ...] = ()
    nodes: tuple[Document, ...] = ()
    slices: tuple[Document, ...] = ()
    classes: tuple[Document, ...] = ()
    states: tuple[NodeState, ...] = ()
    templates: tuple[Document, ...] = ()

    @property
    def versions(self) -> frozenset[str]:
        """Of pods and claims: as long as they are the same, nothing has happened."""
        return frozenset(each["metadata"]["resourceVersion"] for each in (*self.pods, *self.claims))


async def take(cluster: Cluster, nodes: Mapping[str, PeerNode]) -> Snapshot:
    """As soon as nothing changes any more for a moment."""
    while True:
        before = await _take(cluster, nodes)
        await anyio.sleep(CALM)
        after = await _take(cluster, nodes)
        if before.versions == after.versions:
            return after


async def _take(cluster: Cluster, nodes: Mapping[str, PeerNode]) -> Snapshot:
    async def all_of(resource: Resource) -> tuple[Document, ...]:
        return tuple(dict(each) for each in (await cluster.list(resource)).items)

    machines, slices = await all_of(NODES), await all_of(RESOURCE_SLICES)
    return Snapshot(
        await all_of(PODS),
        await all_of(RESOURCE_CLAIMS),
        machines,
        tuple(each for each in slices if not _is_of_gone_driver(each, machines)),
        await all_of(DEVICE_CLASSES),
        tuple([await _state(name, node) for name, node in nodes.items()]),
        await all_of(RESOURCE_CLAIM_TEMPLATES),
    )


def _is_of_gone_driver(slice_: Document, machines: Sequence[Document]) -> bool:
    """Return True if nothing may be placed on the devices of the slice at present."""
    found = view(ResourceSlice, slice_)
    return any(is_of_gone_driver(found, view(Node, each)) for each in machines)


async def _state(name: str, node: PeerNode) -> NodeState:
    return NodeState(
        name,
        tuple(node.claim_checkpoint().values()),
        tuple(node.checkpoint().entries or ()) if node.checkpoint_path.exists() else (),
        tuple(sorted(node.specs())),
        _driver_checkpoints(node.root),
        await _holders(node),
        await _listed(node),
    )


def _driver_checkpoints(root: Path) -> dict[str, tuple[str, ...]]:
    found = {}
    for file in (root / "plugins").glob("*/checkpoint.json"):
        claims: Sequence[Document] = json.loads(file.read_text()).get("preparedClaims") or ()
        found[file.parent.name] = tuple(each["uid"] for each in claims)
    return found


async def _holders(node: PeerNode) -> frozenset[str]:
    devices = (await node.devices()).values()
    statuses: Iterable[Document] = (status for each in devices for status in each.values())
    return frozenset(status["holder"]["podUID"] for status in statuses if status.get("holder"))


async def _listed(node: PeerNode) -> frozenset[str]:
    return frozenset(
        each.name
        for each in (await pod_resources(node)).pod_resources
        if any(container.devices or container.dynamic_resources for container in each.containers)
    )


def claim_names(pod: Document) -> dict[str, str | None]:
    """The claims of its entries, as far as they are known by now; None where none is necessary."""
    made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    named = (each for each in pod["spec"].get("resourceClaims") or () if each.get("resourceClaimName"))
    return {each["name"]: each.get("resourceClaimName") for each in (*made, *named)}


def consumers(claim: Document) -> dict[str, str]:
    """The pods that it is reserved for: names by UID."""
    return {each["uid"]: each["name"] for each in (claim.get("status") or {}).get("reservedFor") or ()}


def lacks_claims(pod: Document, claims: Iterable[Document]) -> bool:
    """Whether one of its claims is not there, or not reserved for it."""
    uid, known = pod["metadata"]["uid"], claim_names(pod)
    reserved = {each["metadata"]["name"] for each in claims if uid in consumers(each)}
    names = [known.get(entry["name"], "") for entry in pod["spec"].get("resourceClaims") or ()]
    return not reserved.issuperset(name for name in names if name is not None)
