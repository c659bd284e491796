"""Changes of objects update the scheduler's state, and retry the pods that they may help."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.informer import Changed
from devlet.control.informers import BY_CLAIM, BY_NODE
from devlet.control.scheduler.decision import UNSCHEDULABLE, Refusal
from devlet.control.scheduler.pending import PendingPods
from devlet.control.scheduler.queue import Wake
from devlet.control.scheduler.settings import Settings
from devlet.control.scheduler.watcher import Watcher
from devlet.objects import kinds
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import DriverName, ObjectKey, PodUID
from devlet.objects.node_drivers import ANNOTATION, NodeDriver, encode
from devlet.objects.pods.claims import claim_names
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.core import Namespace
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import until
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of
from tests.unit.control.conftest import World, allocation_on

pytestmark = pytest.mark.anyio

TYPES: dict[str, type[Any]] = {
    "pods": Pod,
    "claims": ResourceClaim,
    "nodes": Node,
    "namespaces": Namespace,
    "classes": DeviceClass,
    "slices": ResourceSlice,
}


class FakeInformer:
    """A copy that the test changes."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, Any] = {}
        self.listeners: list[Callable[[Changed[Any]], None]] = []
        self.version = "1"

    def get(self, name: str, namespace: str = "") -> Any:
        return self.objects.get((namespace, name))

    def all(self) -> list[Any]:
        return list(self.objects.values())

    def by_index(self, index: str, value: str) -> list[Any]:
        indexed: dict[str, Callable[[Any], list[str]]] = {
            BY_CLAIM: lambda each: [f"{each.metadata.namespace}/{name}" for name in claim_names(each)],
            BY_NODE: lambda each: [each.spec.node_name],
        }
        return [each for each in self.objects.values() if value in indexed[index](each)]

    def on_change(self, listener: Callable[[Changed[Any]], None]) -> None:
        self.listeners.append(listener)

    def change(self, key: ObjectKey, new: Any) -> None:
        old = self.objects.pop(key, None)
        if new is not None:
            self.objects[key] = new
        for listener in self.listeners:
            listener(Changed(key, old, new))


class FakeInformers:
    """A cluster whose changes are seen at once, the watcher, and the pods that are pending."""

    def __init__(self) -> None:
        self.pods, self.claims, self.nodes = FakeInformer(), FakeInformer(), FakeInformer()
        self.namespaces, self.classes, self.slices = FakeInformer(), FakeInformer(), FakeInformer()
        self.rules = FakeInformer()
        clock, informers = FakeClock(), self
        self.pending = PendingPods(clock, Settings().reports)
        self.state = Watcher(informers, clock, Settings(), self.pending).state  # type: ignore[arg-type]

    def put(self, kind: str, document: Document, **metadata: Any) -> None:
        """Add or replace an object."""
        document = {**document, "metadata": {"uid": document["metadata"]["name"], **document["metadata"], **metadata}}
        if kind == "pods":
            document["spec"] = {"schedulerName": "default-scheduler", **document["spec"]}
        key = (document["metadata"].get("namespace", ""), document["metadata"]["name"])
        getattr(self, kind).change(key, view(TYPES[kind], document))

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        getattr(self, kind).change((namespace, name), None)

    async def refused(self, name: str, wake_on: Wake) -> None:
        """Attempt the next pod, and refuse it."""
        uid = PodUID(name)
        assert await self.pending.queue.pop() == uid
        record = self.pending.get(uid)
        assert record is not None
        self.pending.put_off(record, Refusal(wake_on))

    def ready(self) -> int:
        return self.pending.queue.ready


async def test_a_new_pod_is_ready_unless_its_claims_are_missing() -> None:
    cluster = FakeInformers()
    cluster.put("pods", pod("plain"))
    cluster.put("pods", pod("with-claim", claim="c"))
    assert cluster.ready() == 1 and await cluster.pending.queue.pop() == "plain"
    cluster.put("claims", claim("c"))
    assert cluster.ready() == 1 and await cluster.pending.queue.pop() == "with-claim"


@pytest.mark.parametrize(
    ("kind", "document", "wake_on"),
    [
        ("nodes", node("n1"), Wake.NODES),
        ("slices", slice_of("n1", 1), Wake.DEVICES),
        ("classes", device_class(), Wake.DEVICES),
    ],
)
async def test_a_refused_pod_is_retried_after_a_change_that_it_waits_for(
    kind: str, document: Document, wake_on: Wake
) -> None:
    cluster = FakeInformers()
    cluster.put("pods", pod("p"))
    await cluster.refused("p", Wake.ANYTHING & ~wake_on)
    cluster.put(kind, document)
    assert not cluster.ready()
    cluster.put("pods", pod("p"), generation=2)
    await cluster.refused("p", wake_on)
    cluster.delete(kind, document["metadata"]["name"])
    cluster.put(kind, document)
    assert cluster.ready() == 1


async def test_a_heartbeat_retries_no_pod() -> None:
    cluster = FakeInformers()
    cluster.put("nodes", node("n1"))
    cluster.put("pods", pod("p"))
    await cluster.refused("p", UNSCHEDULABLE.wake_on)
    cluster.put("nodes", node("n1"), annotations={"heartbeat": "1"})
    assert not cluster.ready()


async def test_a_pod_is_retried_when_its_spec_changes_and_not_when_its_conditions_do() -> None:
    cluster = FakeInformers()
    cluster.put("pods", pod("p"))
    await cluster.refused("p", Wake.ITSELF)
    cluster.put("pods", pod("p") | {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}})
    assert not cluster.ready()
    cluster.put("pods", pod("p", nodeSelector={"zone": "a"}))
    assert cluster.ready() == 1


async def test_a_placed_pod_is_counted_until_it_is_finished_or_deleted() -> None:
    cluster = FakeInformers()
    cluster.put("nodes", node("n1"))
    for name in ("a", "b"):
        cluster.put("pods", pod(name, nodeName="n1"))
    cluster.put("pods", pod("p"))
    entry = cluster.state.nodes.get("n1")
    assert entry is not None and entry.use.count == 2
    await cluster.refused("p", Wake.CAPACITY)
    cluster.put("pods", pod("a", nodeName="n1") | {"status": {"phase": "Succeeded"}})
    assert (entry.use.count, cluster.ready()) == (1, 1)
    await cluster.refused("p", Wake.CAPACITY)
    cluster.delete("pods", "b", "default")
    assert (entry.use.count, cluster.ready()) == (0, 1)


async def test_a_pod_is_no_longer_pending_when_it_has_a_node_or_is_deleted() -> None:
    cluster = FakeInformers()
    for name in ("a", "b"):
        cluster.put("pods", pod(name))
    cluster.put("pods", pod("a", nodeName="n1"))
    cluster.delete("pods", "b", "default")
    assert len(cluster.pending.queue) == 0 and cluster.pending.get(PodUID("b")) is None


async def test_a_new_pod_of_the_same_name_replaces_the_deleted_one() -> None:
    cluster = FakeInformers()
    cluster.put("pods", pod("p"), uid="old")
    cluster.put("pods", pod("p"), uid="new")
    assert cluster.pending.get(PodUID("old")) is None and await cluster.pending.queue.pop() == "new"


async def test_a_placed_pod_is_queued_when_its_claim_is_deallocated() -> None:
    cluster = FakeInformers()
    cluster.put("claims", claim("c") | {"status": {"allocation": allocation_on("n1")}})
    cluster.put("pods", pod("p", claim="c", nodeName="n1"))
    assert not cluster.ready()
    cluster.put("claims", claim("c"))
    assert cluster.ready() == 1


async def test_a_pod_that_is_being_bound_is_not_retried_and_its_record_is_updated() -> None:
    cluster = FakeInformers()
    cluster.put("pods", pod("p"))
    assert await cluster.pending.queue.pop() == "p"
    record = cluster.pending.get(PodUID("p"))
    assert record is not None
    cluster.pending.start_binding(record)
    cluster.put("pods", pod("p", nodeName="n1"))
    assert not cluster.ready() and record.pod.spec.node_name == "n1"
    cluster.delete("pods", "p", "default")
    assert record.is_gone


async def test_pods_with_affinity_are_retried_when_a_pod_is_placed_or_a_namespace_gets_labels() -> None:
    cluster = FakeInformers()
    cluster.put("namespaces", {"metadata": {"name": "default"}})
    cluster.put("pods", pod("p"))
    record = cluster.pending.get(PodUID("p"))
    assert record is not None
    cluster.pending.await_others(record)
    await cluster.refused("p", Wake.ITSELF)
    cluster.put("pods", pod("other", nodeName="n1"))
    await cluster.refused("p", Wake.ITSELF)
    cluster.put("pods", pod("other", nodeName="n1"), labels={"app": "web"})
    await cluster.refused("p", Wake.ITSELF)
    cluster.put("namespaces", {"metadata": {"name": "default", "labels": {"team": "a"}}})
    assert cluster.ready() == 1


# With the scheduler: drivers that are gone from their node


def announcing(name: str, *, gone: bool) -> Document:
    """Return a node that announces whether its driver is registered."""
    since = "2026-05-01T12:00:00Z"
    driver = NodeDriver(DriverName(DRIVER), **({"gone_since": since} if gone else {"registered_since": since}))
    found = node(name)
    return {**found, "metadata": {**found["metadata"], "annotations": {ANNOTATION: encode([driver])}}}


async def announce(world: World, name: str, *, gone: bool) -> None:
    annotations = announcing(name, gone=gone)["metadata"]["annotations"]
    await world.store.patch(kinds.NODES, name, MergePatch({"metadata": {"annotations": annotations}}))


async def test_devices_of_a_driver_that_is_gone_are_not_used_until_it_is_back(world: World) -> None:
    await world.add(announcing("n1", gone=True), device_class(), slice_of("n1", 1), claim("c"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.reason("train", f"drivers that are not connected: {DRIVER} on n1")
        await announce(world, "n1", gone=False)
        assert await world.bound("train") == {"train": "n1"}


async def test_devices_of_a_node_where_the_driver_is_registered_are_used_instead(world: World) -> None:
    await world.add(announcing("n1", gone=True), node("n2"), device_class(), slice_of("n1", 1), slice_of("n2", 1))
    await world.add(claim("c"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        assert await world.bound("train") == {"train": "n2"}


async def test_a_placed_pod_loses_its_claim_with_driver_and_slices_and_gets_it_again_with_them(
    world: World,
) -> None:
    await world.add(announcing("n1", gone=False), device_class(), slice_of("n1", 2), claim("c"), claim("started"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"), pod("runs", claim="started"))
        await world.bound("train", "runs")
        state = {"name": "main", "state": {"running": {"startedAt": "2026-05-01T12:00:00Z"}}}
        running = MergePatch({"status": {"phase": "Running", "containerStatuses": [state]}})
        await world.store.patch(kinds.PODS, "runs", running, "default", subresource="status")
        await announce(world, "n1", gone=True)
        (slice_,) = (await world.store.list(kinds.RESOURCE_SLICES)).items
        assert len(await world.devices()) == 2
        await world.store.delete(kinds.RESOURCE_SLICES, slice_["metadata"]["name"])
        await until(world.devices, lambda found: set(found.values()) == {"started"})
        await announce(world, "n1", gone=False)
        await world.add(slice_of("n1", 2))
        await until(world.devices, lambda found: set(found.values()) == {"started", "c"})
        users = (await world.claim("c"))["status"]["reservedFor"]
        assert [each["name"] for each in users] == ["train"]


async def test_a_placed_pod_loses_its_claim_even_if_the_slices_are_removed_before_the_driver(world: World) -> None:
    await world.add(announcing("n1", gone=False), device_class(), slice_of("n1", 1), claim("c"))
    async with world.scheduling():
        await world.add(pod("train", claim="c"))
        await world.bound("train")
        (slice_,) = (await world.store.list(kinds.RESOURCE_SLICES)).items
        await world.store.delete(kinds.RESOURCE_SLICES, slice_["metadata"]["name"])
        await world.settled()
        await announce(world, "n1", gone=True)
        await until(world.devices, lambda found: not found)


async def test_a_lost_claim_is_deallocated_when_a_single_pod_uses_it(world: World) -> None:
    await world.add(announcing("n1", gone=False), device_class(), slice_of("n1", 1), claim("c"))
    async with world.scheduling():
        await world.add(pod("a", claim="c"), pod("b", claim="c"))
        await world.bound("a", "b")
        await announce(world, "n1", gone=True)
        (slice_,) = (await world.store.list(kinds.RESOURCE_SLICES)).items
        await world.store.delete(kinds.RESOURCE_SLICES, slice_["metadata"]["name"])
        await world.settled()
        assert len((await world.claim("c"))["status"]["reservedFor"]) == 2
        await world.remove("b")
        await until(world.devices, lambda found: not found)
