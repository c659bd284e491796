from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.errors import Unavailable
from devlet.kit.backoff import Backoff
from devlet.node.devices.manager import DeviceManager
from devlet.node.pods.life import Act
from devlet.node.pods.manager import Settings
from devlet.node.pods.worker import PERFORM
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID
from devlet.objects.kinds import PODS
from devlet.objects.types.pod import Pod
from devlet.plugins.devices import Device, Grant, Options
from devlet.runtime.none import NoneRuntime
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
    """Add init containers. One with the name helper is a sidecar."""
    container = document["spec"]["containers"][0]
    sidecar = {"restartPolicy": "Always"}
    document["spec"]["initContainers"] = [
        {**container, "name": name, **(sidecar if name == "helper" else {})} for name in names
    ]
    return document


async def test_init_containers_run_before_the_others_and_sidecars_alongside(
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


async def test_a_pod_is_pending_while_an_init_container_runs(node: "NodeHarness", make_pod: MakePod) -> None:
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


async def test_the_answers_of_plugins_reach_the_runtime(node: "NodeHarness", make_pod: MakePod) -> None:
    async with node.running() as now, node.plugged(now) as plugin:
        plugin.grant = lambda ids: Grant(env={"GPU": ids[0]}, cdi_devices=(f"vendor.com/gpu={ids[0]}",))
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        config = now.runtime.config(PodUID(uid), ContainerName("main"))
        assert config is not None and config.env == (("GPU", "dev-0"),)
        assert config.cdi_devices == ("vendor.com/gpu=dev-0",)


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


class SlowRelease:
    """The device manager of a node on which a release waits for the gate."""

    def __init__(self, devices: DeviceManager, gate: anyio.Event) -> None:
        self._devices = devices
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._devices, name)

    async def release(self, pod: PodUID) -> None:
        await self._gate.wait()
        await self._devices.release(pod)


async def test_the_cluster_learns_of_the_end_only_after_the_release(node: "NodeHarness", make_pod: MakePod) -> None:
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


async def test_the_node_starts_even_if_a_release_hangs(node: "NodeHarness", make_pod: MakePod) -> None:
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


async def test_starting_a_container_is_retried_as_soon_as_its_plugin_is_back(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    async with node.running() as now, node.plugged(now, 1, options=Options(pre_start=True)) as plugin:
        plugin.fail("PreStartContainer")
        await node.create(make_pod("p", 1))
        await node.status("p", lambda status: "CreateContainerConfigError" in str(status))
        plugin.recover("PreStartContainer")
        await node.pass_time(2)  # less than the ten seconds of the delay
        plugin.set_devices([*plugin.devices, Device(DeviceID("another"))])
        await node.phase("p", "Running")


class SlowRuntime:
    """The runtime of a node on which stopping containers takes a while: the first requests fail, and the next ones have
    no effect yet."""

    def __init__(self, runtime: NoneRuntime, failures: int, slow: int) -> None:
        self._runtime = runtime
        self._failures = failures
        self._slow = slow
        self.asked = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    async def stop(self, pod: Pod) -> None:
        self.asked.set()
        if self._failures:
            self._failures -= 1
            raise Unavailable("the runtime is away")
        if self._slow:
            self._slow -= 1
        else:
            await self._runtime.stop(pod)


@pytest.mark.parametrize(("failures", "slow"), [(2, 0), (0, 2), (1, 1)])
async def test_devices_are_released_only_after_the_containers_have_stopped(
    node: "NodeHarness", make_pod: MakePod, failures: int, slow: int
) -> None:
    runtimes: list[SlowRuntime] = []

    def use(runtime: NoneRuntime) -> SlowRuntime:
        runtimes.append(SlowRuntime(runtime, failures, slow))
        return runtimes[0]

    async def after_a_while() -> list[str]:
        await node.clock.advance(1)
        return [each["metadata"]["name"] for each in (await node.store.list(PODS, "default")).items]

    async with node.running(QUICK, use_runtime=use) as now, node.plugged(now):
        uid = await node.create(make_pod("p", 1))
        await node.phase("p", "Running")
        await node.store.delete(PODS, "p", "default")
        with deadline():
            await runtimes[0].asked.wait()
        assert now.held(uid) == {"dev-0"} and [each.uid for each in now.pods.active()] == [uid]
        assert (await node.status("p", bool))["phase"] == "Running"
        await until(after_a_while, lambda names: not names)
        assert now.held(uid) == set()
        event = await node.event("Killing")
        assert (event["message"], event["count"]) == ("Stopping container main", 1)


def test_every_act_can_be_performed() -> None:
    assert set(PERFORM) == set(Act) - {Act.REST}
