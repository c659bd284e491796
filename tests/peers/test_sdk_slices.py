"""Slices that the SDK publishes on a real API server, alone and by turns with a driver that uses the Go helper."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.cluster.client import Cluster, ListOptions
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.errors import NotFound
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES, Resource
from devlet.sdk.slices.controller import SlicePublisher, Statistics
from devlet.sdk.slices.dropped import DroppedFields
from devlet.sdk.values import Device, Pool, Taint
from devlet.testing.waiting import deadline, until
from tests.support.peers.control_plane import ControlPlane, control_plane
from tests.support.peers.drivers import dra_test_driver

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

NODE = "n1"


@asynccontextmanager
async def plane(peers: "Peers", **options: Any) -> AsyncIterator[ControlPlane]:
    peers.need("etcd", "kubectl", "kube-apiserver")
    path = Path(tempfile.mkdtemp(prefix="dv"))
    try:
        async with control_plane(peers.binaries, path, fsync=False, **options) as running:
            async with client(running) as cluster:
                await cluster.create(NODES, {"metadata": {"name": NODE}})
            yield running
    finally:
        shutil.rmtree(path)


@asynccontextmanager
async def client(control: ControlPlane, user: str = "admin") -> AsyncIterator[Cluster]:
    async with connected(kubeconfig.connection([control.kubeconfig_of(user)]), Settings(qps=0)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
async def control(peers: "Peers") -> AsyncIterator[ControlPlane]:
    async with plane(peers, users={"nobody": ["nobodies"]}) as running:
        yield running


@pytest.fixture
async def cluster(control: ControlPlane) -> AsyncIterator[Cluster]:
    async with client(control) as cluster:
        yield cluster


class Driver:
    def __init__(self, cluster: Cluster, name: str, **options: Any) -> None:
        self.cluster = cluster
        self.name = name
        self.reports: list[Exception] = []
        self.publisher = SlicePublisher(
            cluster, name, NODE, lambda e, _: self.reports.append(e), SystemClock(), **options
        )

    async def publish(self, pools: Mapping[str, Pool]) -> Statistics:
        """What it took."""
        old = Statistics(*(getattr(self.publisher.statistics, field) for field in Statistics.__struct_fields__))
        self.publisher.publish(pools)
        with deadline():
            await self.publisher.published()
        new = self.publisher.statistics
        return Statistics(new.creates - old.creates, new.updates - old.updates, new.deletes - old.deletes)

    async def slices(self, resource: Resource = RESOURCE_SLICES) -> list[Document]:
        return list(
            (await self.cluster.list(resource, options=ListOptions(field_selector=f"spec.driver={self.name}"))).items
        )

    async def numbers(self) -> list[tuple[str, int, int, int]]:
        """Of each slice: index, generation, count of slices, number of devices."""
        specs = [(each["metadata"]["name"][:6], each["spec"]) for each in await self.slices()]
        pools = [(name, spec["pool"], len(spec.get("devices") or ())) for name, spec in specs]
        return [(name, pool["generation"], pool["resourceSliceCount"], count) for name, pool, count in pools]


def partitions(count: int, **members: Any) -> list[Device]:
    return [
        Device(f"d{i}", {"index": i}, {"memory": "1024Mi"}, consumes={"s0": {"c": "1"}}, **members)
        for i in range(count)
    ]


COUNTERS: Mapping[str, Mapping[str, str | int]] = {f"s{i}": {"c": 1000, "memory": "0.5Gi"} for i in range(10)}


@pytest.mark.spec("DN-6.4a")
async def test_hundreds_of_devices_are_published_changed_and_removed(cluster: Cluster) -> None:
    driver = Driver(cluster, "big.example.com")
    tainted = partitions(300, taints=[Taint("x"), Taint("y", "NoExecute")])
    async with running(driver.publisher.run):
        assert await driver.publish({NODE: Pool(tainted, COUNTERS)}) == Statistics(creates=7)
        sizes = [0, 0, 64, 64, 64, 64, 44]
        assert await driver.numbers() == [(f"{i:05}-", 1, 7, size) for i, size in enumerate(sizes)]
        assert await driver.publish({NODE: Pool(tainted, COUNTERS)}) == Statistics()
        first = {each["metadata"]["uid"]: each for each in await driver.slices()}

        # One slice differs: it is updated in place. Its taints keep their times.
        new = Device("d299", {"index": 7}, consumes={"s1": {"c": 2}}, taints=[Taint("x"), Taint("z")])
        assert await driver.publish({NODE: Pool([*tainted[:-1], new], COUNTERS)}) == Statistics(updates=1)
        assert {each[1] for each in await driver.numbers()} == {1}
        (old,) = (each for each in first.values() if each["metadata"]["name"].startswith("00006"))
        now = (await driver.slices())[6]
        assert now["metadata"]["uid"] == old["metadata"]["uid"]
        assert now["spec"]["devices"][:-1] == old["spec"]["devices"][:-1]
        before, after = old["spec"]["devices"][-1]["taints"], now["spec"]["devices"][-1]["taints"]
        assert after[0] == before[0] and after[1]["timeAdded"]

        # Fewer slices: a new generation for those that stay.
        assert await driver.publish({NODE: Pool(tainted[:100], COUNTERS)}) == Statistics(updates=4, deletes=3)
        assert await driver.numbers() == [(f"{i:05}-", 2, 4, size) for i, size in enumerate([0, 0, 64, 36])]
        assert {each["metadata"]["uid"] for each in await driver.slices()} <= first.keys()

        assert await driver.publish({NODE: Pool()}) == Statistics(updates=1, deletes=3)
        assert await driver.numbers() == [("00000-", 2, 1, 0)]
        assert await driver.publish({}) == Statistics(deletes=1)
    assert await driver.slices() == [] and not driver.reports


@pytest.mark.spec("DN-10.P23")
async def test_the_largest_slices_that_are_allowed_are_taken(cluster: Cluster) -> None:
    driver = Driver(cluster, "max.example.com")
    attributes = {f"{'d' * 57}.{'e' * 5}/{'a' * 30}{i:02}": "v" * 64 for i in range(32)}
    async with running(driver.publisher.run):
        devices = [Device(f"{'d' * 60}{i:03}", attributes) for i in range(128)]
        assert await driver.publish({NODE: Pool(devices)}) == Statistics(creates=1)
        assert await driver.publish({NODE: Pool(devices)}) == Statistics()
        assert await driver.publish({}) == Statistics(deletes=1)
    assert not driver.reports


@pytest.mark.spec("DN-6.4f")
async def test_drivers_of_both_kinds_take_over_each_others_slices(
    peers: "Peers", control: ControlPlane, cluster: Cluster, root: Path
) -> None:
    peers.need("test-driver")
    driver = Driver(cluster, "test-driver.cdi.k8s.io")
    go = dra_test_driver(peers.binaries, root, control.kubeconfig, node_name=NODE, num_devices=3)
    async with go:
        (made,) = await until(driver.slices, bool)
    pool = made["spec"]["pool"]["name"]

    def same() -> list[Device]:
        return [
            Device(each["name"], more={k: v for k, v in each.items() if k != "name"})
            for each in made["spec"]["devices"]
        ]

    async with running(driver.publisher.run):
        assert await driver.publish({pool: Pool(same())}) == Statistics()
        assert await driver.publish({pool: Pool([*same(), Device("more")])}) == Statistics(updates=1)
    (ours,) = await driver.slices()
    assert ours["metadata"]["uid"] == made["metadata"]["uid"]

    # And back: the Go helper finds the index in our name and changes the slice in place, in the same generation.
    async with dra_test_driver(peers.binaries, root, control.kubeconfig, node_name=NODE, num_devices=3):
        (theirs,) = await until(driver.slices, lambda found: found[0]["spec"]["devices"] == made["spec"]["devices"])
    assert (theirs["metadata"]["uid"], theirs["spec"]["pool"]) == (made["metadata"]["uid"], made["spec"]["pool"])

    # A slice that we made is one that the Go helper would have made.
    await cluster.delete(RESOURCE_SLICES, theirs["metadata"]["name"])
    again = Driver(cluster, driver.name)
    async with running(again.publisher.run):
        assert await again.publish({pool: Pool(same())}) == Statistics(creates=1)
    (ours,) = await driver.slices()
    assert ours["spec"] == made["spec"]
    for member in ("generateName", "ownerReferences"):
        assert ours["metadata"][member] == made["metadata"][member]
    assert not driver.reports and not again.reports


@pytest.mark.spec("DN-11.25")
async def test_a_driver_without_rights_is_told_and_not_kept_waiting(control: ControlPlane) -> None:
    async with client(control, "nobody") as cluster:
        driver = Driver(cluster, "nobody.example.com")
        async with running(driver.publisher.run):
            assert await driver.publish({NODE: Pool()}) == Statistics()
    (error,) = driver.reports
    assert 'cannot list resource "resourceslices"' in str(error)


class OldServer:
    """A server as it would be with one version of slices. A real one of today does not start without v1."""

    def __init__(self, cluster: Cluster, served: Resource) -> None:
        self._cluster = cluster
        self._served = served

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cluster, name)

        def call(resource: Resource, *arguments: Any, **options: Any) -> Any:
            if resource.kind == self._served.kind and resource != self._served:
                raise NotFound("the server could not find the requested resource")
            return method(resource, *arguments, **options)

        return call


@pytest.mark.spec("DN-11.27")
@pytest.mark.parametrize("version", RESOURCE_SLICES.kind.api_versions)
async def test_a_server_that_has_only_one_version_will_do(cluster: Cluster, version: str) -> None:
    old: Any = OldServer(cluster, Resource(RESOURCE_SLICES.kind, version))
    driver = Driver(old, "versions.example.com")
    async with running(driver.publisher.run):
        pools = {NODE: Pool(partitions(3, taints=[Taint("x")]), COUNTERS)}
        assert await driver.publish(pools) == Statistics(creates=3)
        assert await driver.publish(pools) == Statistics()
        (device, *_) = (await Driver(cluster, driver.name).slices())[2]["spec"]["devices"]
        assert device["attributes"] == {"index": {"int": 0}} and device["consumesCounters"]
        assert await driver.publish({NODE: Pool(partitions(2), COUNTERS)}) == Statistics(updates=1)
        assert await driver.publish({}) == Statistics(deletes=3)
    assert not driver.reports


@pytest.mark.spec("DN-10.P13")
async def test_features_that_a_server_lacks_are_named(peers: "Peers") -> None:
    gates = ("DRADeviceTaints", "DRADeviceTaintRules", "DRAPartitionableDevices")
    async with plane(peers, feature_gates=dict.fromkeys(gates, False), runtime_config={}) as control:
        async with client(control) as cluster:
            driver = Driver(cluster, "drop.example.com")
            pools = {NODE: Pool(partitions(3, taints=[Taint("x")]), COUNTERS)}
            async with running(driver.publisher.run):
                assert await driver.publish(pools) == Statistics(creates=3)
                assert await driver.publish(pools) == Statistics()
    counters = [error.gates for error in driver.reports if isinstance(error, DroppedFields)]
    assert counters == [*[("DRAPartitionableDevices",)] * 2, ("DRADeviceTaints", "DRAPartitionableDevices")]
    assert len(driver.reports) == 3
