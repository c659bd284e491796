from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.cluster.client import DeleteOptions, MergePatch, WatchEvent
from devlet.cluster.store.store import Store
from devlet.errors import Expired
from devlet.kit.backoff import Backoff
from devlet.node.devices.manager import DeviceManager
from devlet.node.pods.manager import Settings
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.kinds import PODS
from devlet.plugins.devices import Device
from devlet.testing.waiting import until

if TYPE_CHECKING:
    from tests.unit.node.pods.conftest import NodeHarness, Running

pytestmark = pytest.mark.anyio

MakePod = Callable[..., Document]
GPU = ResourceName("vendor.com/gpu")
MAIN = ContainerName("main")


def main(status: Document) -> Document:
    found: Document = status["containerStatuses"][0]
    return found


def health(status: Document) -> list[tuple[str, str]]:
    found = main(status).get("allocatedResourcesStatus", [])
    return [(each["resourceID"], each["health"]) for entry in found for each in entry["resources"]]


async def held(node: "Running", uid: str) -> set[str]:
    return node.held(uid)


async def released(node: "Running", uid: str) -> None:
    await until(partial(held, node, uid), lambda found: not found)


async def delete(node: "NodeHarness", name: str, grace: int | None = None) -> None:
    await node.store.delete(PODS, name, "default", DeleteOptions(grace))


async def test_a_pod_runs_with_its_devices_from_the_moment_it_is_bound(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        status = await node.phase("p", "Running")
        assert now.held(uid) == {"dev-0"} and health(status) == [("dev-0", "Healthy")]
        assert main(status)["containerID"] == f"none://{uid}/main"
        config = now.runtime.config(PodUID(uid), MAIN)
        assert config is not None and dict(config.env)
        assert {each["type"]: each["status"] for each in status["conditions"]} == {
            "PodReadyToStartContainers": "True",
            "Initialized": "True",
            "Ready": "True",
            "ContainersReady": "True",
            "PodScheduled": "True",
        }
        await node.event("Started")


async def test_pods_of_other_nodes_are_left_alone(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now:
        await node.create(make_pod("other", nodeName="n2"))
        await node.create(make_pod("mine"))
        await node.phase("mine", "Running")
        assert [each.name for each in now.pods.active()] == ["mine"]
        assert (await node.status("other", bool))["phase"] == "Pending"


async def test_a_pod_is_found_by_its_name_while_it_is_active(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now:
        await node.create(make_pod("p", restartPolicy="Never", annotations={"devlet.dev/run-for": "5s"}))
        await node.phase("p", "Running")
        found = now.pods.find("default", "p")
        assert found is not None and found.name == "p"
        assert now.pods.find("default", "q") is None and now.pods.find("other", "p") is None
        await node.pass_time(5)
        await node.phase("p", "Succeeded")
        assert now.pods.find("default", "p") is None and now.pods.active() == []


async def test_a_deleted_pod_is_stopped_released_and_then_removed(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        await delete(node, "p")
        await node.gone("p")
        assert now.held(uid) == set() and now.pods.active() == []
        await node.event("Killing")


@pytest.mark.spec("DP-8.32")
async def test_a_pod_that_is_gone_has_no_options_and_starting_its_containers_adds_nothing(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        (pod,) = now.pods.active()
        assert now.devices.options(PodUID(uid), MAIN) is not None
        await delete(node, "p")
        await node.gone("p")
        assert await now.devices.start(pod, pod.containers[0]) is None


async def test_a_pod_that_is_deleted_by_force_releases_its_devices(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        await delete(node, "p", 0)
        await released(now, uid)


async def test_a_pod_of_the_same_name_is_another_pod(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now, 1):
        first = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        await delete(node, "p", 0)
        await released(now, first)
        second = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        assert now.held(second) == {"dev-0"}


class Forgetful:
    """A cluster whose first watches report nothing until the gate opens, and then that they have expired."""

    def __init__(self, store: Store, gate: anyio.Event) -> None:
        self._store = store
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def watch(self, *arguments: Any) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        if self._gate.is_set():
            async with self._store.watch(*arguments) as events:
                yield events
        else:
            await self._gate.wait()
            raise Expired("too old")


async def test_a_pod_that_replaced_another_during_a_lost_watch_is_another_pod(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    gate = anyio.Event()
    forgetful: Any = Forgetful(node.store, gate)
    node.cluster = forgetful
    first = await node.create(make_pod("p"))
    async with node.running() as now:
        await node.phase("p", "Running")
        await delete(node, "p", 0)
        second = await node.create(make_pod("p"))
        gate.set()
        await node.phase("p", "Running")

        async def active() -> list[str]:
            return [each.uid for each in now.pods.active()]

        await until(active, lambda uids: uids == [second])
        assert first != second


async def test_a_pod_with_a_finalizer_releases_its_devices(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        held_up = make_pod("p", 1)
        held_up["metadata"]["finalizers"] = ["example.com/hold"]
        uid = await node.create(held_up)
        await node.phase("p", "Running")
        await delete(node, "p")
        await node.phase("p", "Succeeded")
        assert now.held(uid) == set()
        await node.store.patch(PODS, "p", MergePatch({"metadata": {"finalizers": None}}), "default")
        await node.gone("p")


async def test_devices_are_released_before_the_cluster_learns_that_a_pod_is_over(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now):
        done = {"devlet.dev/run-for": "10s", "devlet.dev/exit-code": "3"}
        uid = await node.create(make_pod("p", 1, restartPolicy="Never", annotations=done))
        await node.phase("p", "Running")
        await node.pass_time(10)
        status = await node.phase("p", "Failed")
        assert now.held(uid) == set()
        assert main(status)["state"]["terminated"]["exitCode"] == 3
        assert health(status) == [("dev-0", "Healthy")]


@pytest.mark.spec("DP-8.19")
@pytest.mark.spec("DP-8.22")
async def test_an_unhealthy_device_shows_in_the_status_and_does_not_stop_the_pod(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now, 1) as plugin:
        await node.create(make_pod("p", 1, restartPolicy="Never", annotations={"devlet.dev/run-for": "10s"}))
        await node.status("p", lambda status: status["phase"] == "Running" and health(status) == [("dev-0", "Healthy")])
        plugin.set_devices([Device(DeviceID("dev-0"), "Unhealthy")])
        sick = [("dev-0", "Unhealthy")]
        status = await node.status("p", lambda status: health(status) == sick)
        assert status["phase"] == "Running" and now.devices.capacity().allocatable[GPU] == 0
        await node.pass_time(10)
        assert health(await node.phase("p", "Succeeded")) == sick


async def test_a_pod_that_cannot_get_devices_is_rejected_and_leaves_no_trace(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now, 1):
        uid = await node.create(make_pod("greedy", 2))
        status = await node.phase("greedy", "Failed")
        assert status["reason"] == "UnexpectedAdmissionError"
        text = "requested number of devices unavailable for vendor.com/gpu. Requested: 2, Available: 1"
        message = f"Allocate failed due to {text}, which is unexpected"
        assert status["message"] == f"Pod was rejected: {message}" and "containerStatuses" not in status
        event = await node.event("UnexpectedAdmissionError")
        assert (event["type"], event["message"]) == ("Warning", message)
        assert now.held(uid) == set() and now.pods.active() == []
        modest = await node.create(make_pod("modest", 1))
        await node.phase("modest", "Running")
        assert now.held(modest) == {"dev-0"}


async def test_a_pod_for_which_the_node_is_too_small_is_rejected_without_devices(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    node.allocatable["pods"] = "1"
    async with node.running() as now, node.plugged(now):
        await node.create(make_pod("first", 1))
        await node.phase("first", "Running")
        uid = await node.create(make_pod("second", 1))
        status = await node.phase("second", "Failed")
        assert status["reason"] == "OutOfpods" and now.held(uid) == set()
        await delete(node, "first")
        await node.gone("first")
        await node.create(make_pod("third", 1))
        await node.phase("third", "Running")


async def test_a_container_that_ends_is_restarted_and_then_backs_off(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1, annotations={"devlet.dev/exit-code": "2"}))
        status = await node.status("p", lambda status: "waiting" in main(status)["state"] if main_is(status) else False)
        assert main(status)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert (main(status)["restartCount"], main(status)["lastState"]["terminated"]["exitCode"]) == (1, 2)
        assert status["phase"] == "Running"
        await node.event("BackOff")
        await node.pass_time(10)
        await node.status("p", lambda status: main(status)["restartCount"] == 2)
        assert now.held(uid) == {"dev-0"}


def main_is(status: Document) -> bool:
    return bool(status.get("containerStatuses"))


async def test_an_invalid_annotation_shows_in_the_status_of_the_container(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running():
        await node.create(make_pod("p", annotations={"devlet.dev/run-for": "soon"}))
        status = await node.status("p", main_is)
        waiting = main(status)["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError" and "devlet.dev/run-for" in waiting["message"]
        await node.event("Failed")
        fixed = MergePatch({"metadata": {"annotations": {"devlet.dev/run-for": None}}})
        await node.store.patch(PODS, "p", fixed, "default")
        await node.pass_time(10)
        await node.phase("p", "Running")


async def test_a_pod_that_is_declared_failed_is_stopped(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        evicted = MergePatch({"status": {"phase": "Failed", "reason": "Evicted", "message": "no room"}})
        await node.store.patch(PODS, "p", evicted, "default", subresource="status")
        await released(now, uid)
        status = await node.status("p", lambda status: "terminated" in main(status)["state"])
        assert (status["phase"], status["reason"]) == ("Failed", "Evicted")


class Retaining:
    """A device manager that remembers which pods kept their devices when the node started."""

    def __init__(self, devices: DeviceManager) -> None:
        self._devices = devices
        self.kept: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._devices, name)

    async def retain(self, pods: Collection[PodUID]) -> None:
        self.kept |= set(pods)
        await self._devices.retain(pods)


async def test_a_pod_that_was_declared_failed_while_devlet_was_down_is_stopped_before_its_devices_are_free(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
    lost = MergePatch({"status": {"phase": "Failed", "reason": "Lost", "message": "unknown"}})
    await node.store.patch(PODS, "p", lost, "default", subresource="status")
    retaining: list[Retaining] = []

    def use(devices: DeviceManager) -> Retaining:
        retaining.append(Retaining(devices))
        return retaining[0]

    async with node.running(use=use) as now, node.plugged(now):
        status = await node.status("p", lambda status: "terminated" in main(status)["state"])
        assert (status["phase"], status["reason"]) == ("Failed", "Lost")
        assert (await node.event("Killing"))["message"] == "Stopping container main"
        await released(now, uid)
    assert retaining[0].kept == {uid}


async def test_each_of_sixty_four_pods_at_once_gets_its_own_device(node: "NodeHarness", make_pod: MakePod) -> None:
    node.allocatable[GPU] = "64"
    async with node.running() as now, node.plugged(now, 64):
        uids: list[str] = []

        async def create(number: int) -> None:
            uids.append(await node.create(make_pod(f"p{number}", 1)))

        async with anyio.create_task_group() as tasks:
            for number in range(64):
                tasks.start_soon(create, number)
        for number in range(64):
            await node.phase(f"p{number}", "Running")
        assert len(set().union(*(now.held(uid) for uid in uids))) == 64


class Faulty:
    """A device manager that fails the given number of times for some pods."""

    def __init__(self, devices: DeviceManager, failures: dict[str, int]) -> None:
        self._devices = devices
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._devices, name)

    def pending_resources(self, pod: Any) -> Any:
        if self._failures.get(pod.name, 0):
            self._failures[pod.name] -= 1
            raise RuntimeError("a defect")
        return self._devices.pending_resources(pod)


async def test_a_worker_that_fails_is_retried_and_does_not_affect_the_others(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    failures = {"unlucky": 2}
    quick = Settings(retry=Backoff(1.0, 2.0))
    async with node.running(quick, use=lambda devices: Faulty(devices, failures)):
        await node.create(make_pod("unlucky"))
        await node.create(make_pod("lucky"))
        await node.phase("lucky", "Running")
        await node.pass_time(10)
        await node.phase("unlucky", "Running")


# Restarts


@pytest.mark.spec("DP-8.76")
async def test_a_pod_keeps_running_over_a_restart_without_its_plugin(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        before = await node.phase("p", "Running")
        await node.clock.advance(60)
    async with node.running() as now:
        assert now.held(uid) == {"dev-0"} and [each.uid for each in now.pods.active()] == [uid]
        second = await node.create(make_pod("q"))
        await node.phase("q", "Running")
        after = await node.status("p", bool)
        assert main(after)["state"] == main(before)["state"] and main(after)["restartCount"] == 0
        async with node.plugged(now) as plugin:
            second = await node.create(make_pod("r", 1))
            await node.phase("r", "Running")
            assert now.held(second) == {"dev-1"} and len(plugin.asked("Allocate")) == 1


async def test_the_running_time_of_a_container_continues_over_a_restart(node: "NodeHarness", make_pod: MakePod) -> None:
    once = make_pod("p", restartPolicy="Never", annotations={"devlet.dev/run-for": "100s"})
    async with node.running():
        await node.create(once)
        await node.phase("p", "Running")
        await node.clock.advance(60)
    async with node.running():
        await node.pass_time(39)
        assert (await node.status("p", bool))["phase"] == "Running"
        await node.pass_time(1)
        await node.phase("p", "Succeeded")


async def test_a_container_that_ends_before_its_plugin_is_back_restarts_when_it_is(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1, annotations={"devlet.dev/run-for": "100s"}))
        await node.phase("p", "Running")
    await node.clock.advance(100)
    async with node.running() as now:
        status = await node.status("p", lambda status: "waiting" in main(status)["state"])
        assert main(status)["state"]["waiting"]["reason"] == "WaitingForDevicePlugin"
        assert status["phase"] == "Running"
        async with node.plugged(now):
            status = await node.status("p", lambda status: "running" in main(status)["state"])
            assert main(status)["restartCount"] == 1 and len(now.held(uid)) == 1


@pytest.mark.spec("DP-8.77")
async def test_a_pod_that_has_succeeded_is_not_admitted_again(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        await node.create(make_pod("p", 1, restartPolicy="Never", annotations={"devlet.dev/exit-code": "0"}))
        await node.phase("p", "Succeeded")
    node.boot = "b2"
    async with node.running() as now:
        await node.create(make_pod("q"))
        await node.phase("q", "Running")
        assert (await node.status("p", bool))["phase"] == "Succeeded"
        assert [each.name for each in now.pods.active()] == ["q"]


@pytest.mark.spec("DP-8.79")
async def test_devices_of_pods_that_were_deleted_while_devlet_was_down_are_free(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now):
        gone = await node.create(make_pod("gone", 1))
        marked = await node.create(make_pod("marked", 1))
        await node.phase("gone", "Running")
        await node.phase("marked", "Running")
    await delete(node, "gone", 0)
    await delete(node, "marked")
    async with node.running() as now:
        assert now.held(gone) == set()
        await node.gone("marked")
        assert now.held(marked) == set()


@pytest.mark.spec("DP-9.10")
@pytest.mark.spec("DP-8.76")
async def test_after_a_reboot_a_pod_waits_for_its_plugin_and_gets_the_same_device(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now):
        first = await node.create(make_pod("first", 1))
        await node.phase("first", "Running")
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
    await delete(node, "first", 0)
    node.boot = "b2"
    async with node.running() as now:
        status = await node.phase("p", "Pending")
        waiting = main(status)["state"]["waiting"]
        assert waiting["reason"] == "WaitingForDevicePlugin" and "vendor.com/gpu" in waiting["message"]
        assert main(status)["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"
        assert "vendor.com/gpu" in (await node.event("WaitingForDevicePlugin"))["message"]
        assert now.held(first) == set()
        async with node.plugged(now):
            status = await node.phase("p", "Running")
            assert main(status)["restartCount"] == 1 and now.held(uid) == {"dev-1"}


@pytest.mark.spec("DP-8.78")
async def test_after_a_reboot_a_pod_whose_plugin_never_comes_back_is_rejected(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
    node.boot = "b2"
    async with node.running() as now:
        await node.phase("p", "Pending")
        await node.pass_time(301)
        status = await node.phase("p", "Failed")
        assert status["reason"] == "UnexpectedAdmissionError"
        assert main(status)["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
        assert now.held(uid) == set() and now.pods.active() == []


async def test_a_pod_can_be_deleted_while_it_waits_for_a_plugin(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
    node.boot = "b2"
    async with node.running() as now:
        await node.phase("p", "Pending")
        await delete(node, "p")
        await node.gone("p")
        assert now.held(uid) == set()


async def test_after_a_reboot_a_pod_that_must_not_be_restarted_has_failed(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running():
        await node.create(make_pod("p", restartPolicy="Never"))
        await node.phase("p", "Running")
    node.boot = "b2"
    async with node.running():
        status = await node.phase("p", "Failed")
        ended = main(status)["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")


@pytest.mark.spec("DP-9.10")
async def test_a_running_pod_with_ended_init_containers_keeps_running_over_a_restart(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    document = make_pod("p", 1)
    document["spec"]["initContainers"] = [{**document["spec"]["containers"][0], "name": "prepare"}]
    async with node.running() as now, node.plugged(now):
        uid = await node.create(document)
        before = await node.phase("p", "Running")
    async with node.running() as now:
        await node.create(make_pod("q"))
        await node.phase("q", "Running")
        assert (await node.status("p", bool))["phase"] == "Running" and now.held(uid) == {"dev-0"}
        assert [each["state"] for each in before["initContainerStatuses"]] != [{}]


async def test_a_running_pod_keeps_its_devices_when_the_checkpoint_was_lost(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
    (node.directory / "kubelet_internal_checkpoint").unlink()
    async with node.running() as now, node.plugged(now):
        assert now.held(uid) == {"dev-0"}
        second = await node.create(make_pod("q", 1))
        await node.phase("q", "Running")
        assert now.held(second) == {"dev-1"}


async def test_a_status_is_written_only_when_it_changes(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now:
        uid = await node.create(make_pod("p"))
        await node.phase("p", "Running")
        version = (await node.store.get(PODS, "p", "default"))["metadata"]["resourceVersion"]
        now.pods.health_changed(frozenset({PodUID(uid), PodUID("unknown")}))
        await node.create(make_pod("q"))
        await node.phase("q", "Running")
        assert (await node.store.get(PODS, "p", "default"))["metadata"]["resourceVersion"] == version
