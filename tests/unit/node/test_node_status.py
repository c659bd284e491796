from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from devlet.cluster.client import Cluster, MergePatch
from devlet.cluster.events import Recorder
from devlet.cluster.store.store import Store, open_store
from devlet.errors import AlreadyExists, Forbidden, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.parts import running
from devlet.node.devices.manager import DeviceManager
from devlet.node.host import Host
from devlet.node.node_status import NodeStatus, Settings
from devlet.objects.documents import Document
from devlet.objects.identifiers import DeviceID, NodeName, ResourceName
from devlet.objects.kinds import EVENTS, NODES
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Device
from devlet.state.device_checkpoint import Encoder
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio

GPU = ResourceName("vendor.com/gpu")
HOST = Host(cpus=4, memory=8 * 1024**3, storage=1024**4, boot_id="b1", kernel="6.1", image="Example")


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


class Machine:
    """A root on which nodes can run one after the other."""

    def __init__(self, root: Path, store: Store) -> None:
        self.directory = root / "device-plugins"
        self.directory.mkdir(mode=0o700)
        self.store = store
        self.cluster: Cluster = store
        self.clock = FakeClock()
        self.host = HOST
        self.annotations: dict[str, str] = {}
        self.seen: list[dict[str, str]] = []

    def annotate(self, before: Mapping[str, str]) -> dict[str, str]:
        self.seen.append(dict(before))
        return self.annotations

    @asynccontextmanager
    async def running(self, settings: Settings = Settings()) -> AsyncIterator[tuple[NodeStatus, DeviceManager]]:
        devices = DeviceManager(self.directory, self.clock)
        recorder = Recorder(self.store, "devlet", "n1", self.clock)
        status = NodeStatus(
            self.cluster,
            NodeName("n1"),
            devices,
            self.host,
            "none://1",
            recorder,
            self.clock,
            settings,
            damage=lambda: devices.damage,
            annotations=self.annotate,
        )
        async with running(recorder.run), running(devices.run), running(status.run):
            yield status, devices

    @asynccontextmanager
    async def plugged(self, devices: DeviceManager, count: int = 2) -> AsyncIterator[FakeDevicePlugin]:
        async with FakeDevicePlugin(self.directory, GPU, count) as plugin:
            await devices.register(Offer(GPU, plugin.path, plugin.api))
            yield plugin

    async def node(self, holds: Callable[[Document], bool] = bool) -> Document:
        async def read() -> Document:
            await self.clock.advance(1)  # there is a least time between writes
            return await self.store.get(NODES, "n1")

        return await until(read, holds)

    async def gpus(self, capacity: str | None, allocatable: str | None) -> None:
        def holds(node: Document) -> bool:
            status = node["status"]
            return (status["capacity"].get(GPU), status["allocatable"].get(GPU)) == (capacity, allocatable)

        await self.node(holds)


@pytest.fixture
def machine(root: Path, store: Store) -> Machine:
    return Machine(root, store)


def condition(node: Document, type_: str) -> Document | None:
    return next((each for each in node["status"]["conditions"] if each["type"] == type_), None)


async def test_annotations_are_written_at_the_start_and_when_they_change_beside_those_of_others(
    machine: Machine,
) -> None:
    machine.annotations = {"devlet.dev/drivers": "[1]"}
    async with machine.running():
        found = (await machine.store.get(NODES, "n1"))["metadata"]["annotations"]
        assert found == {"devlet.dev/drivers": "[1]"} and machine.seen == [{}]
    await machine.store.patch(NODES, "n1", MergePatch({"metadata": {"annotations": {"theirs": "x"}}}))
    machine.annotations = {"devlet.dev/drivers": "[2]"}
    async with machine.running() as (status, _):
        found = (await machine.store.get(NODES, "n1"))["metadata"]["annotations"]
        assert found == {"devlet.dev/drivers": "[2]", "theirs": "x"}
        assert machine.seen[1] == {"devlet.dev/drivers": "[1]", "theirs": "x"}
        machine.annotations = {"devlet.dev/drivers": "[3]"}
        status.refresh()
        await machine.node(lambda node: node["metadata"]["annotations"]["devlet.dev/drivers"] == "[3]")


async def test_a_missing_node_is_created(machine: Machine) -> None:
    async with machine.running() as (status, _):
        node = await machine.store.get(NODES, "n1")
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
        assert node["status"]["capacity"] == {**HOST.capacity, "pods": "110"} == node["status"]["allocatable"]
        ready = condition(node, "Ready")
        assert ready is not None and (ready["status"], ready["lastHeartbeatTime"]) == ("True", "2025-01-01T00:00:00Z")
        assert condition(node, "DeviceCheckpointDamaged") is None
        assert node["status"]["nodeInfo"]["bootID"] == "b1"
        assert node["status"]["nodeInfo"]["containerRuntimeVersion"] == "none://1"
        assert {each["type"]: each["address"] for each in node["status"]["addresses"]} == {
            "Hostname": "n1",
            "InternalIP": "127.0.0.1",
        }
        assert status.reference.uid == node["metadata"]["uid"] == status.uid


async def test_devices_of_plugins_are_published_as_they_change(machine: Machine) -> None:
    async with machine.running() as (status, devices):
        async with machine.plugged(devices) as plugin:
            await machine.gpus("2", "2")
            plugin.set_devices([Device(DeviceID("dev-0")), Device(DeviceID("dev-1"), "Unhealthy")])
            await machine.gpus("2", "1")
            assert status.node().status.allocatable[GPU] == "1"
        await machine.gpus("2", "0")
        await machine.clock.advance(301)
        await machine.gpus("0", "0")


async def test_an_existing_node_keeps_the_fields_of_other_writers(machine: Machine) -> None:
    other = {"capacity": {"other.com/x": "3"}, "conditions": [{"type": "Theirs", "status": "True"}]}
    await machine.store.create(NODES, {"metadata": {"name": "n1", "labels": {"mine": "yes"}}, "status": other})
    (machine.directory / "kubelet_internal_checkpoint").write_bytes(Encoder().encode(None, {}))  # of an earlier run
    async with machine.running() as (status, _):
        node = await machine.node()
        assert node["metadata"]["labels"]["mine"] == "yes"
        assert node["metadata"]["labels"]["kubernetes.io/os"] == "linux"
        assert (node["status"]["capacity"]["other.com/x"], node["status"]["allocatable"]["other.com/x"]) == ("3", "3")
        assert condition(node, "Theirs") is not None
        assert status.node().metadata.labels["mine"] == "yes"


@pytest.mark.spec("DP-8.36")
async def test_without_a_checkpoint_the_extended_resources_of_an_earlier_node_are_reset(
    machine: Machine,
) -> None:
    amounts = {str(GPU): "4", "hugepages-2Mi": "0"}
    await machine.store.create(NODES, {"metadata": {"name": "n1"}, "status": {"capacity": amounts}})
    (machine.directory / "some.sock").touch()  # other files are not checkpoints
    async with machine.running():
        await machine.gpus("0", "0")
        assert (await machine.node())["status"]["capacity"]["hugepages-2Mi"] == "0"


async def test_a_damaged_checkpoint_is_a_condition_of_the_node(machine: Machine) -> None:
    (machine.directory / "kubelet_internal_checkpoint").write_bytes(b"garbage")
    async with machine.running():
        damaged = condition(await machine.node(), "DeviceCheckpointDamaged")
        assert damaged is not None and damaged["status"] == "True" and "set aside" in damaged["message"]
    for path in machine.directory.glob("kubelet_internal_checkpoint?*"):
        path.unlink()
    async with machine.running():
        assert condition(await machine.node(), "DeviceCheckpointDamaged") is None


@pytest.mark.spec("KA-9.3c")
async def test_conditions_are_renewed_every_five_minutes(machine: Machine) -> None:
    async with machine.running():
        before = await machine.node()
        await machine.clock.sleeping(1)
        await machine.clock.advance(295)

        def is_renewed(node: Document) -> bool:
            return all(each["lastHeartbeatTime"] > "2025-01-01T00:04:59Z" for each in node["status"]["conditions"])

        after = await machine.node(is_renewed)
    assert {each["type"]: each["status"] for each in after["status"]["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    for type_ in ("Ready", "MemoryPressure"):
        one, other = condition(before, type_), condition(after, type_)
        assert one is not None and other is not None and one["lastTransitionTime"] == other["lastTransitionTime"]


@pytest.mark.spec("KA-9.3d")
async def test_a_node_that_was_declared_lost_becomes_ready_and_keeps_its_taints(machine: Machine) -> None:
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    async with machine.running():
        node = await machine.node()
        lost = [each | {"status": "Unknown", "reason": "NodeStatusUnknown"} for each in node["status"]["conditions"]]
        await machine.store.patch(NODES, "n1", MergePatch({"spec": {"taints": [taint]}}))
        await machine.store.patch(NODES, "n1", MergePatch({"status": {"conditions": lost}}), subresource="status")

        def is_back(node: Document) -> bool:
            ready = condition(node, "Ready")
            return ready is not None and (ready["status"], ready["reason"]) == ("True", "KubeletReady")

        after = await machine.node(is_back)
        assert after["spec"]["taints"] == [taint]


async def test_nothing_is_written_at_the_stop(machine: Machine) -> None:
    async with machine.running():
        before = await machine.node()
    assert await machine.store.get(NODES, "n1") == before


async def test_a_deleted_node_is_created_again(machine: Machine) -> None:
    async with machine.running():
        before = await machine.node()
        await machine.store.delete(NODES, "n1")

        async def names() -> list[str]:
            await machine.clock.advance(1)
            return [each["metadata"]["uid"] for each in (await machine.store.list(NODES)).items]

        await until(names, lambda uids: bool(uids) and before["metadata"]["uid"] not in uids)


async def test_a_reboot_is_reported_as_an_event(machine: Machine) -> None:
    async with machine.running():
        pass
    machine.host = Host(cpus=4, memory=1, storage=1, boot_id="b2")
    async with machine.running():
        node = await machine.node()
        assert node["status"]["nodeInfo"]["bootID"] == "b2"
    (event,) = (await machine.store.list(EVENTS)).items
    assert event["reason"] == "Rebooted" and event["message"] == "Node n1 has been rebooted, boot id: b2"
    assert event["involvedObject"]["uid"] == node["metadata"]["uid"]


async def test_nothing_is_written_while_nothing_changes(machine: Machine) -> None:
    async with machine.running() as (_, devices), machine.plugged(devices) as plugin:
        await machine.gpus("2", "2")
        version = (await machine.node())["metadata"]["resourceVersion"]
        plugin.set_devices(2)
        plugin.set_devices([*plugin.devices[::-1]])
        await until(partial(_records, devices), lambda ids: len(ids) == 2)
        assert (await machine.node())["metadata"]["resourceVersion"] == version


async def _records(devices: DeviceManager) -> list[str]:
    return [record.id for record in devices.device_records()]


async def test_changes_of_other_writers_are_seen(machine: Machine) -> None:
    async with machine.running() as (status, _):
        await machine.store.patch(NODES, "n1", MergePatch({"metadata": {"labels": {"zone": "a"}}}))

        async def labels() -> dict[str, str]:
            return status.node().metadata.labels

        await until(labels, lambda found: found.get("zone") == "a")


async def test_the_taints_of_the_node_are_seen(machine: Machine) -> None:
    async with machine.running() as (status, _):
        assert status.node().spec.taints == ()
        taint = {"key": "broken", "effect": "NoExecute"}
        await machine.store.patch(NODES, "n1", MergePatch({"spec": {"taints": [taint]}}))

        async def taints() -> list[str]:
            return [each.key for each in status.node().spec.taints]

        await until(taints, lambda found: found == ["broken"])


class Away:
    """A cluster that refuses to create the first few nodes."""

    def __init__(self, store: Store, failures: int) -> None:
        self._store = store
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def create(self, *arguments: Any, **options: Any) -> Document:
        if self._failures:
            self._failures -= 1
            raise Unavailable("not now")
        return await self._store.create(*arguments, **options)


async def test_writing_is_retried_while_the_cluster_is_unavailable(machine: Machine) -> None:
    away: Any = Away(machine.store, 2)
    machine.cluster = away
    async with anyio.create_task_group() as tasks:

        async def pass_time() -> None:
            while True:
                await machine.clock.sleeping(1)
                await machine.clock.advance(1)
                await anyio.lowlevel.checkpoint()

        tasks.start_soon(pass_time)
        async with machine.running(Settings(retry=Backoff(1.0, 2.0))):
            assert (await machine.store.get(NODES, "n1"))["metadata"]["name"] == "n1"
        tasks.cancel_scope.cancel()


class Contrary:
    """A cluster that refuses to create the node, and cannot read it."""

    def __init__(self, store: Store, error: Exception) -> None:
        self._store = store
        self._error = error
        self.creates = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def create(self, *arguments: Any, **options: Any) -> Document:
        await anyio.lowlevel.checkpoint()
        self.creates += 1
        raise self._error

    async def get(self, *arguments: Any, **options: Any) -> Document:
        raise Unavailable("not now")


@pytest.mark.parametrize("error", [AlreadyExists("there"), NotFound("no such resource")])
async def test_contradicting_answers_are_retried_with_growing_delays(machine: Machine, error: Exception) -> None:
    contrary: Any = Contrary(machine.store, error)
    machine.cluster = contrary

    async def run() -> None:
        async with machine.running(Settings(retry=Backoff(1.0, 4.0, jitter=0))):
            raise AssertionError("it cannot be ready")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with deadline():
            for creates, wait in [(1, 1), (2, 2), (3, 4), (4, 4)]:
                while contrary.creates < creates:
                    await anyio.lowlevel.checkpoint()
                await machine.clock.sleeping(1)
                await machine.clock.advance(wait - 0.5)
                assert contrary.creates == creates
                await machine.clock.advance(0.5)
        tasks.cancel_scope.cancel()


async def test_a_node_that_may_not_be_annotated_still_reports_its_status(machine: Machine) -> None:
    async with machine.running():
        pass

    class Strict:
        """Allow only writes of the status."""

        def __getattr__(self, name: str) -> Any:
            return getattr(machine.store, name)

        async def patch(self, resource: Any, name: str, patch: Any, *args: Any, subresource: str = "") -> Document:
            if not subresource:
                raise Forbidden("nodes is forbidden")
            return await machine.store.patch(resource, name, patch, *args, subresource=subresource)

    strict: Any = Strict()
    machine.cluster = strict
    machine.annotations = {"devlet.dev/drivers": "[1]"}
    async with machine.running() as (_, devices), machine.plugged(devices):
        await machine.gpus("2", "2")
        assert "annotations" not in (await machine.store.get(NODES, "n1"))["metadata"]
