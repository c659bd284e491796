import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.cluster.client import Cluster, DeleteOptions, ListOptions, ObjectList
from devlet.cluster.store.store import Store, open_store
from devlet.errors import DevletError, Forbidden, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.parts import running
from devlet.node.slices import Settings, SliceKeeper, plan
from devlet.objects.documents import Document
from devlet.objects.identifiers import DriverName, NodeName
from devlet.objects.kinds import RESOURCE_SLICES, Resource
from devlet.objects.node_drivers import ANNOTATION, NodeDriver, decode, encode
from devlet.plugins.dra import DriverRecord, Service
from devlet.plugins.dra_registry import DraRegistry
from devlet.testing.fake_clock import FakeClock
from tests.support.cluster_contract.specimens import resource_slice

pytestmark = pytest.mark.anyio

GPU = DriverName("gpu.example.com")
NIC = DriverName("nic.example.com")
STEADY = Settings(retry=Backoff(1.0, 300.0, jitter=0.0), look=Backoff(0.001, 0.01))


class FakeDrivers:
    """The registered drivers, and whether each is connected."""

    def __init__(self) -> None:
        self._connected: dict[DriverName, bool] = {}
        self.version = 0
        self._changed = anyio.Event()

    def put(self, driver: DriverName, *, connected: bool) -> None:
        self._connected[driver] = connected
        self._tell()

    def remove(self, driver: DriverName) -> None:
        del self._connected[driver]
        self._tell()

    def _tell(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self, since: int, /) -> int:
        while self.version <= since:
            await self._changed.wait()
        return self.version

    def is_usable(self, name: DriverName, /) -> bool:
        return self._connected.get(name, False)

    def records(self) -> list[DriverRecord]:
        now = FakeClock().now()
        return [
            DriverRecord(driver, Path("/s"), Service.V1, ("v1",), None, now, connected, now, preferred=True)
            for driver, connected in self._connected.items()
        ]


class Spied:
    """The store, with a record of deletions, and with failures."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.deletions: list[tuple[float, str]] = []
        self.fails: list[DevletError] = []  # the next deletions, in this order
        self.unserved: tuple[str, ...] = ()
        self.hidden = False  # lists and watches are forbidden
        self.clock = FakeClock()
        self.busy = anyio.Lock()  # held while the store deletes, which takes a while

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        self._check(resource)
        if self.hidden:
            raise Forbidden("not you")
        return await self._store.list(resource, namespace, options)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
        select: ListOptions = ListOptions(),
    ) -> ObjectList:
        self._check(resource)
        assert not select.label_selector
        self.deletions.append((self.clock.monotonic(), select.field_selector))
        if self.fails:
            raise self.fails.pop(0)
        async with self.busy:
            return await self._store.delete_collection(resource, namespace, options, select)

    def _check(self, resource: Resource) -> None:
        if resource.version in self.unserved:
            raise NotFound("the server could not find the requested resource")


class Node:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.cluster = Spied(store)
        self.clock = self.cluster.clock
        self.drivers = FakeDrivers()
        self.changes = 0

    def count(self) -> None:
        self.changes += 1

    @asynccontextmanager
    async def running(self, settings: Settings = STEADY) -> AsyncIterator[SliceKeeper]:
        cluster: Cluster = self.cluster
        keeper = SliceKeeper(cluster, NodeName("n1"), self.drivers, self.clock, settings, on_change=self.count)
        async with running(keeper.run):
            await self.settled()
            yield keeper

    async def publish(self, name: str, driver: DriverName = GPU, node: str = "n1") -> None:
        await self.store.create(RESOURCE_SLICES, resource_slice(name, node_name=node, driver=driver))
        await self.settled()

    async def settled(self) -> None:
        await self.clock.advance(0)
        async with self.cluster.busy:
            pass
        await self.clock.advance(0)

    async def passes(self, seconds: float) -> None:
        await self.settled()
        await self.clock.advance(seconds)
        await self.settled()

    async def slices(self) -> list[str]:
        return [item["metadata"]["name"] for item in (await self.store.list(RESOURCE_SLICES)).items]


@pytest.fixture
async def node(root: Path, anyio_backend: str) -> AsyncIterator[Node]:
    async with open_store(root / "cluster.db") as store:
        yield Node(store)


def announced(keeper: SliceKeeper, before: str = "") -> dict[str, str]:
    """Return the drivers of the annotation, each with `here` or with the time since when it is gone."""
    found = keeper.annotations({ANNOTATION: before} if before else {})
    return {each.name: each.gone_since or "here" for each in decode(found.get(ANNOTATION, ""))}


async def test_the_annotation_names_the_drivers_that_are_registered_and_that_are_gone(node: Node) -> None:
    node.drivers.put(NIC, connected=True)
    await node.publish("a")
    async with node.running() as keeper:
        await node.settled()
        assert announced(keeper) == {GPU: "2025-01-01T00:00:00Z", NIC: "here"}
        node.drivers.put(GPU, connected=True)
        before = node.changes
        await node.passes(5)
        assert node.changes > before
        assert announced(keeper) == {GPU: "here", NIC: "here"}
        node.drivers.remove(NIC)
        await node.passes(5)
        assert announced(keeper) == {GPU: "here", NIC: "2025-01-01T00:00:05Z"}


async def test_after_a_restart_all_drivers_of_the_previous_run_are_gone(node: Node) -> None:
    left = encode([NodeDriver(GPU, gone_since="2024-12-31T23:59:00Z"), NodeDriver(NIC, registered_since="x")])
    keeper = SliceKeeper(node.cluster, NodeName("n1"), node.drivers, node.clock)
    assert announced(keeper, left) == {GPU: "2024-12-31T23:59:00Z", NIC: "2025-01-01T00:00:00Z"}
    more = encode([NodeDriver(DriverName("other.example.com"), gone_since="x")])
    assert "other.example.com" not in announced(keeper, more)


async def test_a_driver_that_is_gone_with_its_slices_is_announced_for_a_day_and_no_more_than_64_are(node: Node) -> None:
    node.drivers.put(GPU, connected=True)
    async with node.running() as keeper:
        await node.settled()
        node.drivers.remove(GPU)
        await node.passes(86_399)
        assert announced(keeper) == {GPU: "2025-01-01T00:00:00Z"}
        await node.passes(2)
        assert announced(keeper) == {}
        for number in range(70):
            node.drivers.put(DriverName(f"d{number:02}.example.com"), connected=True)
        await node.settled()
        assert len(announced(keeper)) == 64


def test_a_node_without_drivers_has_no_annotation(node: Node) -> None:
    keeper = SliceKeeper(node.cluster, NodeName("n1"), node.drivers, node.clock)
    assert keeper.annotations({}) == {}


def test_the_slices_of_known_drivers_that_are_not_usable_are_deleted() -> None:
    usable = {NIC}.__contains__
    assert plan([GPU, NIC], usable, [], []) == {GPU}
    assert plan([], usable, [], [GPU]) == frozenset()
    assert plan([GPU], usable, [GPU], []) == frozenset()
    assert plan([GPU], usable, [GPU], [GPU]) == {GPU}
    assert plan([NIC], usable, [NIC], [NIC]) == frozenset()


@pytest.mark.spec("DN-9.2.24")
async def test_slices_found_at_the_start_are_deleted_after_the_delay_but_not_those_of_another_node(node: Node) -> None:
    await node.publish("mine")
    await node.publish("mine-too", NIC)
    await node.publish("other", node="n2")
    async with node.running() as keeper:
        due = node.clock.now() + timedelta(seconds=30)
        assert keeper.records() == {GPU: due, NIC: due}
        await node.passes(29.9)
        assert await node.slices() == ["mine", "mine-too", "other"]
        await node.passes(0.1)
        assert await node.slices() == ["other"]
        assert keeper.records() == {}


@pytest.mark.spec("DN-2.5")
async def test_a_driver_that_registers_soon_after_the_start_keeps_its_slices(node: Node) -> None:
    await node.publish("a")
    async with node.running() as keeper:
        await node.passes(20)
        node.drivers.put(GPU, connected=True)
        await node.settled()
        assert keeper.records() == {}
        await node.passes(100)
        assert await node.slices() == ["a"]
        assert node.cluster.deletions == []


@pytest.mark.spec("DN-9.2.25")
async def test_the_slices_of_a_driver_that_stopped_are_deleted_once(node: Node) -> None:
    node.drivers.put(GPU, connected=True)
    async with node.running() as keeper:
        await node.publish("a")
        assert keeper.records() == {}
        node.drivers.remove(GPU)
        await node.passes(30)
        assert await node.slices() == []
        await node.passes(1000)
        assert [when for when, _ in node.cluster.deletions] == [30.0]


@pytest.mark.spec("DN-10.R11")
@pytest.mark.spec("DN-9.2.26")
async def test_a_lost_connection_leads_to_a_wipe_after_the_delay(node: Node) -> None:
    node.drivers.put(GPU, connected=True)
    async with node.running():
        await node.publish("a")
        node.drivers.put(GPU, connected=False)
        await node.passes(29.9)
        assert await node.slices() == ["a"]
        await node.passes(0.1)
        assert await node.slices() == []


@pytest.mark.spec("DN-10.R10")
async def test_a_wipe_selects_node_and_driver(node: Node) -> None:
    node.drivers.put(GPU, connected=False)
    async with node.running():
        await node.publish("other-driver", NIC)
        await node.publish("other-node", node="n2")
        await node.passes(30)
        assert [fields for _, fields in node.cluster.deletions] == [f"spec.nodeName=n1,spec.driver={GPU}"]
        assert await node.slices() == ["other-driver", "other-node"]


@pytest.mark.spec("DN-9.2.28")
@pytest.mark.spec("DN-10.R12")
async def test_a_driver_that_reconnects_before_the_delay_keeps_its_slices_as_they_are(node: Node) -> None:
    node.drivers.put(GPU, connected=True)
    async with node.running():
        await node.publish("a")
        before = await node.store.get(RESOURCE_SLICES, "a")
        node.drivers.put(GPU, connected=False)
        await node.passes(5)
        node.drivers.put(GPU, connected=True)
        await node.passes(60)
        assert await node.store.get(RESOURCE_SLICES, "a") == before


@pytest.mark.spec("DN-9.2.27")
async def test_slices_of_a_driver_that_was_never_reachable_are_deleted(node: Node) -> None:
    async with node.running():
        node.drivers.put(GPU, connected=False)
        await node.passes(10)
        await node.publish("by-hand")
        await node.passes(20)
        assert await node.slices() == []


async def test_slices_that_appear_after_a_wipe_are_also_deleted_if_their_driver_does_not_return(node: Node) -> None:
    node.drivers.put(GPU, connected=False)
    async with node.running():
        await node.passes(100)
        await node.publish("late")
        await node.passes(29.9)
        assert await node.slices() == ["late"]
        await node.passes(0.1)
        assert await node.slices() == []
        await node.publish("later")
        node.drivers.put(GPU, connected=True)
        await node.passes(100)
        assert await node.slices() == ["later"]


async def test_a_driver_that_never_registered_here_keeps_slices_that_it_publishes_later(node: Node) -> None:
    async with node.running() as keeper:
        await node.publish("foreign")
        await node.passes(1000)
        assert keeper.records() == {}
        assert await node.slices() == ["foreign"]


@pytest.mark.spec("DN-2.5")
async def test_the_time_of_a_pending_wipe_does_not_change(node: Node) -> None:
    node.drivers.put(GPU, connected=False)
    async with node.running() as keeper:
        due = keeper.records()
        await node.passes(20)
        node.drivers.remove(GPU)
        await node.settled()
        node.drivers.put(GPU, connected=False)
        await node.settled()
        assert keeper.records() == due
        await node.passes(10)
        assert len(node.cluster.deletions) == 1


@pytest.mark.spec("DN-11.04")
async def test_a_wipe_is_retried_with_growing_delays_until_it_succeeds(node: Node) -> None:
    await node.publish("a")
    node.cluster.fails = [Unavailable("down")] * 20
    async with node.running() as keeper:
        await node.passes(30 + 10_000)
        assert await node.slices() == []
        assert keeper.records() == {}
    times = [when - 30 for when, _ in node.cluster.deletions]
    assert times[:10] == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511]
    assert {later - earlier for earlier, later in pairwise(times[9:])} == {300}
    assert len(times) == 21


def test_the_delays_have_a_jitter_of_up_to_a_fifth() -> None:
    assert Settings().retry.delay(0, lambda: 0.999) == pytest.approx(1.2, abs=0.001)


@pytest.mark.spec("DN-11.05")
async def test_a_wipe_that_is_being_retried_ends_when_the_driver_returns(node: Node) -> None:
    await node.publish("a")
    node.cluster.fails = [Unavailable("down")] * 3
    async with node.running() as keeper:
        await node.passes(31)
        assert len(node.cluster.deletions) == 2
        assert keeper.records()[GPU] < node.clock.now()
        node.drivers.put(GPU, connected=True)
        await node.settled()
        assert keeper.records() == {}
        await node.passes(1000)
        assert await node.slices() == ["a"]
        assert len(node.cluster.deletions) == 2


async def test_a_driver_that_is_usable_at_the_last_moment_keeps_its_slices(node: Node) -> None:
    await node.publish("a")
    async with node.running():
        await node.clock.advance(29.9)
        node.drivers._connected[GPU] = True  # without notifying the keeper
        await node.passes(100)
        assert await node.slices() == ["a"]


@pytest.mark.spec("DN-2.6")
async def test_missing_permissions_are_not_logged_as_warnings_but_other_errors_are(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    await node.publish("a")
    node.cluster.fails = [Forbidden("not yet")]
    with caplog.at_level(logging.WARNING):
        async with node.running():
            await node.passes(31)
        assert await node.slices() == []
        assert not caplog.records
        await node.publish("b")
        node.cluster.fails = [Unavailable("down")]
        async with node.running():
            await node.passes(31)
    assert [record.message for record in caplog.records] == ["slices not deleted"]


async def test_a_cluster_without_slices_has_none_to_delete(node: Node) -> None:
    node.cluster.unserved = ("v1", "v1beta2", "v1beta1")
    node.drivers.put(GPU, connected=False)
    async with node.running() as keeper:
        await node.passes(30)
        assert keeper.records() == {}


async def test_slices_are_deleted_even_if_they_cannot_be_listed(node: Node) -> None:
    await node.publish("a")
    node.cluster.hidden = True
    node.drivers.put(GPU, connected=False)
    async with node.running():
        await node.passes(30)
        assert await node.slices() == []


@pytest.mark.spec("DN-11.27")
@pytest.mark.parametrize("unserved", [("v1",), ("v1", "v1beta2")])
async def test_an_older_cluster_is_used_in_its_version(node: Node, unserved: tuple[str, ...]) -> None:
    await node.publish("a")
    node.cluster.unserved = unserved
    async with node.running() as keeper:
        assert list(keeper.records()) == [GPU]
        await node.passes(30)
        assert await node.slices() == []


@pytest.mark.spec("DN-11.28")
async def test_the_delay_can_be_set(node: Node) -> None:
    await node.publish("a")
    async with node.running(Settings(delay=2.0)):
        await node.passes(2)
        assert await node.slices() == []


@pytest.mark.spec("DN-2.7")
async def test_a_stop_forgets_what_is_pending(node: Node) -> None:
    await node.publish("a")
    async with node.running():
        await node.passes(10)
    await node.passes(100)
    assert await node.slices() == ["a"]
    assert node.clock.wakes_at == []


async def test_a_slice_that_is_being_deleted_already_does_not_count(node: Node) -> None:
    document: Document = resource_slice("held", finalizers=["example.com/hold"])
    node.drivers.put(GPU, connected=False)
    async with node.running() as keeper:
        await node.store.create(RESOURCE_SLICES, document)
        await node.passes(30)
        assert await node.slices() == ["held"]
        await node.passes(1000)
        assert len(node.cluster.deletions) == 1
        assert keeper.records() == {}


async def test_only_so_many_drivers_without_slices_are_remembered(node: Node) -> None:
    names = [DriverName(f"d{number}.example.com") for number in range(5)]
    async with node.running(Settings(remembered=2)):
        for name in names:
            node.drivers.put(name, connected=False)
            await node.passes(30)
            node.drivers.remove(name)
            await node.settled()
        for name in names:
            await node.publish(name.replace(".", "-"), name)
        await node.passes(60)
        assert await node.slices() == ["d0-example-com", "d1-example-com", "d2-example-com"]


async def test_an_invalid_driver_name_never_gets_into_a_selector(node: Node) -> None:
    node.drivers.put(DriverName("a,spec.driver!=b"), connected=False)
    async with node.running() as keeper:
        assert keeper.records() == {}
        await node.passes(100)
        assert node.cluster.deletions == []


async def test_a_driver_that_never_listens_is_known_from_the_registry(node: Node, root: Path) -> None:
    registry = DraRegistry(node.clock)
    keeper = SliceKeeper(node.cluster, NodeName("n1"), registry, node.clock, STEADY)
    async with running(registry.run), running(keeper.run):
        await registry.register(GPU, root / "dra.sock", ["v1.DRAPlugin"])
        await node.publish("by-hand")
        assert list(keeper.records()) == [GPU]
        await node.passes(30)
        assert await node.slices() == []
        await registry.deregister(GPU, root / "dra.sock")
        await node.passes(100)
        assert len(node.cluster.deletions) == 1
