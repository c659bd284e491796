from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.errors import Unavailable
from devlet.kit.backoff import Backoff
from devlet.node.devices.manager import DeviceManager
from devlet.node.pods.manager import Settings
from devlet.node.pods.worker import Stage
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID
from devlet.objects.kinds import PODS
from devlet.plugins.devices import Device, Grant, Options
from devlet.testing.waiting import deadline, until

if TYPE_CHECKING:
    from tests.unit.node.pods.conftest import NodeHarness

pytestmark = pytest.mark.anyio

MakePod = Callable[..., Document]
QUICK = Settings(retry=Backoff(1.0, 2.0))


def states(status: Document) -> dict[str, str]:
    found = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    return {each["name"]: next(iter(each["state"])) for each in found}


def with_init(document: Document, *names: str) -> Document:
    """Init containers; one that is named helper is a sidecar."""
    container = document["spec"]["containers"][0]
    sidecar = {"restartPolicy": "Always"}
    document["spec"]["initContainers"] = [
        {**container, "name": name, **(sidecar if name == "helper" else {})} for name in names
    ]
    return document


async def test_init_containers_run_before_the_others_and_sidecars_beside_them(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    document = make_pod("p", 1, restartPolicy="Never", annotations={"devlet.dev/run-for": "10s"})
    async with node.running() as now, node.plugged(now, 2):
        await node.create(with_init(document, "prepare", "helper"))
        status = await node.phase("p", "Running")
        assert states(status) == {"prepare": "terminated", "helper": "running", "main": "running"}
        devices = {
            each["name"]: each["allocatedResourcesStatus"][0]["resources"][0]["resourceID"]
            for each in (*status["initContainerStatuses"], *status["containerStatuses"])
        }
        assert devices["helper"] != devices["main"]
        await node.pass_time(10)
        status = await node.phase("p", "Succeeded")
        assert states(status) == dict.fromkeys(("prepare", "helper", "main"), "terminated")


async def test_an_init_container_that_takes_its_time_keeps_the_pod_pending(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running():
        await node.create(with_init(make_pod("p", annotations={"devlet.dev/run-for.prepare": "30s"}), "prepare"))
        status = await node.status("p", lambda status: states(status).get("prepare") == "running")
        assert status["phase"] == "Pending" and states(status)["main"] == "waiting"
        initialized = next(each for each in status["conditions"] if each["type"] == "Initialized")
        assert (initialized["status"], initialized["message"]) == (
            "False",
            "containers with incomplete status: [prepare]",
        )
        await node.pass_time(30)
        await node.phase("p", "Running")


@pytest.mark.spec("DP-8.33")
async def test_plugins_prepare_devices_before_the_container_starts(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now, options=Options(pre_start=True)) as plugin:
        plugin.fail("PreStartContainer", text="not yet")
        uid = await node.create(make_pod("p", 1))
        status = await node.status("p", lambda status: states(status).get("main") == "waiting")
        waiting = status["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError" and "not yet" in waiting["message"]
        assert now.held(uid) == {"dev-0"}
        plugin.recover("PreStartContainer")
        await node.pass_time(10)
        await node.phase("p", "Running")
        assert [each.ids for each in plugin.asked("PreStartContainer")] == [("dev-0",), ("dev-0",)]


async def test_what_plugins_give_reaches_the_runtime(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now) as plugin:
        plugin.grant = lambda ids: Grant(env={"GPU": ids[0]}, cdi_devices=(f"vendor.com/gpu={ids[0]}",))
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        config = now.runtime.config(PodUID(uid), ContainerName("main"))
        assert config is not None and config.env == (("GPU", "dev-0"),)
        assert config.cdi_devices == ("vendor.com/gpu=dev-0",)


async def test_a_pod_that_is_deleted_during_its_admission_ends_well(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now) as plugin:
        plugin.hang("Allocate")
        uid = await node.create(make_pod("p", 1))
        with deadline():
            await plugin.until_asked("Allocate")
        await node.store.delete(PODS, "p", "default")
        plugin.recover("Allocate")
        await node.gone("p")
        assert now.held(uid) == set() and now.pods.active() == []


async def test_a_pod_that_was_never_started_has_failed_when_it_is_deleted(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    document = make_pod("p", annotations={"devlet.dev/run-for": "soon"})
    document["metadata"]["finalizers"] = ["example.com/hold"]
    async with node.running():
        await node.create(document)
        await node.status("p", lambda status: states(status).get("main") == "waiting")
        await node.store.delete(PODS, "p", "default")
        status = await node.phase("p", "Failed")
        assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


class FullDisk:
    """The device manager of a node on which the first few admissions cannot be written down."""

    def __init__(self, devices: DeviceManager, failures: int) -> None:
        self._devices = devices
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._devices, name)

    def attempt(self, pod: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise Unavailable("no space left on device")
        return self._devices.attempt(pod)


async def test_an_admission_that_cannot_be_written_down_is_tried_again(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running(QUICK, use=lambda devices: FullDisk(devices, 2)) as now, node.plugged(now):
        await node.create(make_pod("p", 1))
        event = await node.event("FailedAdmission")
        assert "no space left on device" in event["message"]
        await node.pass_time(10)
        await node.phase("p", "Running")


class SlowRelease:
    """The device manager of a node on which a release takes until it is let through."""

    def __init__(self, devices: DeviceManager, gate: anyio.Event) -> None:
        self._devices = devices
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._devices, name)

    async def release(self, pod: PodUID) -> None:
        await self._gate.wait()
        await self._devices.release(pod)


async def test_the_cluster_hears_of_the_end_only_after_the_release(node: "NodeHarness", make_pod: MakePod) -> None:
    gate = anyio.Event()
    once = make_pod("p", 1, restartPolicy="Never", annotations={"devlet.dev/run-for": "10s"})
    async with node.running(use=lambda devices: SlowRelease(devices, gate)) as now, node.plugged(now):
        uid = await node.create(once)
        await node.phase("p", "Running")
        await node.pass_time(10)

        async def active() -> list[Any]:
            return now.pods.active()

        await until(active, lambda found: not found)
        assert (await node.status("p", bool))["phase"] == "Running" and now.held(uid) == {"dev-0"}
        gate.set()
        await node.phase("p", "Succeeded")
        assert now.held(uid) == set()


async def test_a_release_that_hangs_does_not_keep_the_node_from_starting(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    class Stuck(SlowRelease):
        async def retain(self, pods: Any) -> None:
            await self._gate.wait()
            await self._devices.retain(pods)

    gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(node.pass_time, 10, sleepers=0))
        async with node.running(use=lambda devices: Stuck(devices, gate)):
            await node.create(make_pod("p"))
            await node.phase("p", "Running")


async def test_a_pod_that_is_deleted_does_not_wait_for_a_plugin_that_hangs(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now, 1) as plugin:
        plugin.hang("Allocate")
        await node.create(make_pod("p", 1))
        await plugin.until_asked("Allocate")
        await node.store.delete(PODS, "p", "default")
        await node.gone("p")
        assert now.devices.allocated_counts() == {}
        plugin.recover("Allocate")


async def test_a_container_that_could_not_start_is_tried_again_as_soon_as_its_plugin_is_back(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now, 1, options=Options(pre_start=True)) as plugin:
        plugin.fail("PreStartContainer")
        await node.create(make_pod("p", 1))
        await node.status("p", lambda status: "CreateContainerConfigError" in str(status))
        plugin.recover("PreStartContainer")
        await node.pass_time(2)  # of the ten seconds that it would wait
        plugin.set_devices([*plugin.devices, Device(DeviceID("another"))])
        await node.phase("p", "Running")


def test_the_stages_are_those_of_the_drawing() -> None:
    assert [stage.value for stage in Stage] == ["new", "admitted", "ending", "ended"]
