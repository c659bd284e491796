import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from devlet.errors import NotAllocated, PluginRefused, PluginUnavailable, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.parts import running
from devlet.node.devices.manager import DeviceManager, Settings
from devlet.node.devices.records import DeviceState, PluginState
from devlet.node.devices.releases import Hooks, NoHooks, Release
from devlet.node.reports import Report
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.objects.types.container import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    ResourceHealth,
    ResourceRequirements,
    ResourceStatus,
)
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec, PodStatus
from devlet.plugins import device_plugin
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Device, Options
from devlet.state import device_checkpoint
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_device_plugin import NO_RESPONSE, FakeDevicePlugin, large_answer, numbered
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio

GPU = ResourceName("vendor.com/gpu")
MAIN = ContainerName("main")
PATIENT = Settings(
    plugin=device_plugin.Settings(dial=2.0), reconnect=Backoff(0.01, 0.05), hook_retry=Backoff(0.01, 0.05)
)
QUICK = replace(PATIENT, plugin=device_plugin.Settings(allocate=0.3))


def pod(uid: str = "u1", count: int = 1, resource: str = GPU) -> Pod:
    limits = ResourceRequirements(limits={resource: str(count)})
    container = Container(name=MAIN, resources=limits)
    return Pod(metadata=ObjectMeta(uid=uid, name=uid, namespace="default"), spec=PodSpec(containers=(container,)))


def offer(plugin: FakeDevicePlugin) -> Offer:
    return Offer(ResourceName(plugin.resource), plugin.path, plugin.api)


async def admit(manager: DeviceManager, one: Pod) -> set[str]:
    async with manager.attempt(one) as attempt:
        for container in one.spec.containers:
            await attempt.allocate(container, None)
        await attempt.commit()
    return held(manager, one)


def held(manager: DeviceManager, one: Pod) -> set[str]:
    return {id for ids in manager.container_devices(one.uid, MAIN).values() for id in ids}


async def listed(manager: DeviceManager, healthy: int, capacity: int | None = None) -> None:
    """Wait until the plugin's list has arrived."""
    expected = (healthy if capacity is None else capacity, healthy)
    await until(partial(_counts, manager), lambda seen: seen == expected)


async def _counts(manager: DeviceManager) -> tuple[int | None, int | None]:
    found = manager.capacity()
    return found.capacity.get(GPU), found.allocatable.get(GPU)


class Node:
    """A directory on which managers can run one after the other."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "device-plugins"
        self.directory.mkdir(mode=0o700)
        self.checkpoint = self.directory / device_checkpoint.FILE_NAME
        self.reports: list[Report] = []
        self.unwell: list[frozenset[PodUID]] = []
        self.durations: list[tuple[str, float]] = []

    @asynccontextmanager
    async def manager(
        self, clock: Clock | None = None, settings: Settings = PATIENT, hooks: Hooks = NoHooks()
    ) -> AsyncIterator[DeviceManager]:
        manager = DeviceManager(
            self.directory,
            clock or SystemClock(),
            settings,
            machine_nodes=(0, 1),
            hooks=hooks,
            on_health=self.unwell.append,
            report=self.reports.append,
            observe_allocation=lambda resource, seconds: self.durations.append((resource, seconds)),
        )
        async with running(manager.run):
            yield manager

    def entries(self) -> list[tuple[str, set[str]]]:
        """Return the pods and devices of the checkpoint on disk."""
        data = json.loads(self.checkpoint.read_bytes())["Data"]
        found = data["PodDeviceEntries"] or []
        return [(entry["PodUID"], {id for ids in entry["DeviceIDs"].values() for id in ids}) for entry in found]


@pytest.fixture
def node(root: Path) -> Node:
    return Node(root)


@asynccontextmanager
async def plugged(
    node: Node, devices: int = 2, options: Options = Options(), settings: Settings = PATIENT
) -> AsyncIterator[tuple[DeviceManager, FakeDevicePlugin]]:
    async with node.manager(settings=settings) as manager:
        async with FakeDevicePlugin(node.directory, GPU, devices, options=options) as plugin:
            await manager.register(offer(plugin))
            await listed(manager, devices)
            yield manager, plugin


async def test_allocated_devices_are_on_disk_when_the_pod_is_admitted(node: Node) -> None:
    async with plugged(node) as (manager, plugin):
        assert await admit(manager, pod()) == {"dev-0"}
        assert node.entries() == [("u1", {"dev-0"})]
        assert plugin.asked("Allocate")[0].ids == ("dev-0",) and node.durations[0][0] == GPU
        options = manager.options(PodUID("u1"), MAIN)
        assert options is not None and options.env


async def test_sixty_four_concurrent_pods_get_different_devices(node: Node) -> None:
    async with plugged(node, 64) as (manager, _):
        async with anyio.create_task_group() as tasks:
            for number in range(64):
                tasks.start_soon(admit, manager, pod(f"u{number}"))
        owners = [next(iter(ids)) for _, ids in node.entries()]
        assert len(owners) == len(set(owners)) == 64


@pytest.mark.spec("DP-8.53")
@pytest.mark.spec("DP-8.17")
async def test_allocations_survive_a_restart_and_the_plugin_is_awaited(node: Node) -> None:
    async with plugged(node) as (manager, _):
        await admit(manager, pod())
    async with node.manager() as manager:
        assert held(manager, pod()) == {"dev-0"} and manager.checkpoint_existed
        assert manager.capacity().capacity == {GPU: 0} and manager.is_plugin_resource(GPU)
        assert manager.pending_resources(pod("u2")) == (GPU,)
        assert [record.state for record in manager.plugin_records()] == [PluginState.AWAITED]
        async with FakeDevicePlugin(node.directory, GPU, 2) as plugin:
            await manager.register(offer(plugin))
            await listed(manager, 2)
            assert not manager.pending_resources(pod("u2"))
            assert await admit(manager, pod("u2")) == {"dev-1"}


@pytest.mark.spec("DP-8.36")
async def test_a_node_without_a_checkpoint_is_recognised(node: Node) -> None:
    async with node.manager() as manager:
        assert not manager.checkpoint_existed


@pytest.mark.spec("DP-9.12")
async def test_released_devices_are_free_and_removed_from_the_checkpoint(node: Node) -> None:
    async with plugged(node, 1) as (manager, _):
        await admit(manager, pod())
        with pytest.raises(NotAllocated):
            await admit(manager, pod("u2"))
        await manager.release(PodUID("u1"))
        assert node.entries() == [] and not manager.holds_devices(PodUID("u1"))
        assert await admit(manager, pod("u2")) == {"dev-0"}


@pytest.mark.spec("DP-8.79")
async def test_pods_that_ended_while_devlet_was_down_are_released(node: Node) -> None:
    async with plugged(node) as (manager, _):
        await admit(manager, pod("stays"))
        await admit(manager, pod("gone"))
    async with node.manager() as manager:
        await manager.retain([PodUID("stays")])
        assert manager.allocated_counts() == {GPU: 1} and node.entries() == [("stays", {"dev-0"})]


class Gate:
    """Hooks that wait for an event and fail a given number of times."""

    def __init__(self, failures: int = 0) -> None:
        self.open = anyio.Event()
        self.failures = failures
        self.seen: list[Release] = []

    async def run(self, release: Release) -> None:
        self.seen.append(release)
        if self.failures:
            self.failures -= 1
            raise Unavailable("the wipe failed")
        await self.open.wait()


async def test_devices_are_not_free_before_the_release_hooks_have_run(node: Node) -> None:
    gate = Gate(failures=2)
    async with node.manager(hooks=gate) as manager, FakeDevicePlugin(node.directory, GPU, 1) as plugin:
        await manager.register(offer(plugin))
        await listed(manager, 1)
        await admit(manager, pod())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.release, PodUID("u1"))
            await until(partial(_value, lambda: len(gate.seen)), lambda seen: seen == 3)
            assert [record.state for record in manager.device_records()] == [DeviceState.RELEASING]
            with pytest.raises(NotAllocated):
                await admit(manager, pod("u2"))
            gate.open.set()
        assert await admit(manager, pod("u2")) == {"dev-0"}
        assert gate.seen[0] == Release(GPU, (DeviceID("dev-0"),), PodUID("u1"), MAIN)
        assert [report.reason for report in node.reports] == ["DeviceReleaseFailed"] * 2


async def _value(read: Callable[[], object]) -> object:
    return read()


async def test_a_release_that_was_interrupted_by_a_crash_is_completed_after_the_restart(node: Node) -> None:
    gate = Gate()
    async with node.manager(hooks=gate) as manager, FakeDevicePlugin(node.directory, GPU, 1) as plugin:
        await manager.register(offer(plugin))
        await listed(manager, 1)
        await admit(manager, pod())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.release, PodUID("u1"))
            await until(partial(_value, lambda: gate.seen))
            tasks.cancel_scope.cancel()
    gate.open.set()
    async with node.manager(hooks=gate) as manager:
        assert manager.holds_devices(PodUID("u1"))
        await manager.retain([])
        assert len(gate.seen) == 2 and node.entries() == []


@pytest.mark.spec("DP-8.21")
@pytest.mark.spec("DP-9.18")
async def test_pods_whose_devices_change_their_health_are_reported(node: Node) -> None:
    async with plugged(node) as (manager, plugin):
        await admit(manager, pod())
        plugin.set_devices([Device(DeviceID("dev-0"), "Unhealthy"), Device(DeviceID("dev-1"))])
        await listed(manager, 1, 2)
        assert node.unwell == [frozenset({"u1"})]
        assert _health(manager) == "Unhealthy"
        plugin.set_devices([Device(DeviceID("dev-1"))])
        await listed(manager, 1, 1)
        assert _health(manager) == "Unknown" and held(manager, pod()) == {"dev-0"}


def _health(manager: DeviceManager) -> str:
    (status,) = manager.statuses(PodUID("u1"), MAIN)
    return status.resources[0].health


@pytest.mark.spec("DP-8.14")
async def test_a_stopped_plugin_has_capacity_but_nothing_allocatable(node: Node) -> None:
    async with plugged(node) as (manager, plugin):
        await plugin.stop()
        await listed(manager, 0, 2)
        with pytest.raises(NotAllocated, match="no healthy devices present"):
            await admit(manager, pod())


@pytest.mark.spec("DP-9.03")
async def test_a_stream_that_ended_is_reopened_without_a_registration(node: Node) -> None:
    async with plugged(node) as (manager, plugin):
        await plugin.stop()
        await listed(manager, 0, 2)
        await plugin.start()
        await listed(manager, 2)
        assert await admit(manager, pod()) == {"dev-0"}


async def test_the_health_of_devices_is_unknown_if_their_plugin_is_not_back_soon_after_a_restart(node: Node) -> None:
    async with plugged(node) as (manager, _):
        await admit(manager, pod())
    node.unwell.clear()
    clock = FakeClock()
    async with node.manager(clock, settings=Settings(grace=300, health_grace=30)) as manager:
        await clock.sleeping(1)
        await clock.advance(29)
        assert _health(manager) == "" and node.unwell == []
        await clock.advance(2)
        assert _health(manager) == "Unknown" and node.unwell == [frozenset({"u1"})]
        await clock.advance(300)
        assert _health(manager) == "Unknown" and not manager.capacity().allocatable


async def test_after_the_grace_period_a_resource_without_plugin_is_removed(node: Node) -> None:
    clock = FakeClock()
    async with node.manager(clock) as manager:
        async with FakeDevicePlugin(node.directory, GPU, 2) as plugin:
            await manager.register(offer(plugin))
            await listed(manager, 2)
        await listed(manager, 0, 2)
        await clock.advance(301)
        assert manager.capacity().removed == {GPU} and not manager.is_plugin_resource(GPU)
        await until(
            partial(_value, lambda: GPU not in json.loads(node.checkpoint.read_bytes())["Data"]["RegisteredDevices"])
        )


@pytest.mark.spec("DP-9.01")
async def test_a_second_instance_takes_over_and_the_first_one_replaces_it_when_it_ends(node: Node) -> None:
    async with plugged(node, 2) as (manager, _):
        async with FakeDevicePlugin(node.directory, GPU, 3, socket="new.sock") as second:
            await manager.register(offer(second))
            await listed(manager, 3)
            states = [record.state for record in manager.plugin_records()]
            assert states == [PluginState.CONNECTED, PluginState.STANDBY]
            await admit(manager, pod())
            assert second.asked("Allocate")
        await listed(manager, 2)
        assert held(manager, pod()) == {"dev-0"}


@pytest.mark.spec("DP-9.04")
@pytest.mark.parametrize("fault", ["hang", "fail", "empty", "large"])
async def test_a_plugin_that_misbehaves_in_allocate_keeps_its_devices_free(node: Node, fault: str) -> None:
    async with plugged(node, settings=QUICK if fault == "hang" else PATIENT) as (manager, plugin):
        match fault:
            case "hang":
                plugin.hang("Allocate")
            case "fail":
                plugin.fail("Allocate")
            case "empty":
                plugin.answer("Allocate", NO_RESPONSE)
            case "large":
                plugin.answer("Allocate", large_answer(5_000_000))
        with pytest.raises((PluginUnavailable, PluginRefused)):
            await admit(manager, pod())
        assert manager.allocated_counts() == {}
        plugin.recover("Allocate")
        assert await admit(manager, pod("u2", 2)) == {"dev-0", "dev-1"}


async def test_a_hung_plugin_does_not_delay_pods_of_other_plugins(node: Node) -> None:
    async with plugged(node, settings=replace(PATIENT, plugin=device_plugin.Settings(allocate=3.0))) as (manager, hung):
        async with FakeDevicePlugin(node.directory, "vendor.com/nic", 1) as other:
            await manager.register(offer(other))
            await until(partial(_value, lambda: manager.capacity().allocatable.get(ResourceName("vendor.com/nic"))))
            hung.hang("Allocate")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_refused, manager, pod())
                await hung.until_asked("Allocate")
                assert await admit(manager, pod("u2", resource="vendor.com/nic")) == {"dev-0"}
                assert manager.allocated_counts() == {GPU: 1, "vendor.com/nic": 1}
        assert manager.allocated_counts().get(GPU) is None


async def _refused(manager: DeviceManager, one: Pod) -> None:
    with pytest.raises(PluginUnavailable):
        await admit(manager, one)


@pytest.mark.parametrize("method", ["Allocate", "GetPreferredAllocation"])
async def test_a_plugin_that_registers_again_during_a_call_is_called_again(node: Node, method: str) -> None:
    async with plugged(node, 3, Options(preferred_allocation=True)) as (manager, plugin):
        plugin.hang(method)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(admit, manager, pod())
            await plugin.until_asked(method)
            await manager.register(offer(plugin))
            await plugin.until_asked(method, 2)
            plugin.recover(method)
        assert held(manager, pod()) == {"dev-0"}
        assert len(plugin.asked(method)) == 2


@pytest.mark.spec("DP-8.33")
async def test_pre_start_is_called_with_exactly_the_devices(node: Node) -> None:
    async with plugged(node, 3, Options(pre_start=True)) as (manager, plugin):
        one = pod(count=2)
        await admit(manager, one)
        assert await manager.start(one, one.spec.containers[0]) is not None
        assert [call.ids for call in plugin.asked("PreStartContainer")] == [("dev-0", "dev-1")]
        plugin.fail("PreStartContainer", text="no power")
        with pytest.raises(NotAllocated, match=r"PreStartContainer rpc failed with err: .*no power"):
            await manager.start(one, one.spec.containers[0])


@pytest.mark.spec("DP-9.17")
async def test_a_container_does_not_start_before_the_options_of_its_plugin_are_known(node: Node) -> None:
    async with plugged(node, 1, Options(pre_start=True)) as (manager, _):
        await admit(manager, pod())
    async with node.manager() as manager:
        with pytest.raises(NotAllocated, match="has been stopped"):
            await manager.start(pod(), pod().spec.containers[0])


async def test_pre_start_is_not_called_for_plugins_that_do_not_need_it(node: Node) -> None:
    async with plugged(node) as (manager, plugin):
        one = pod()
        await admit(manager, one)
        await manager.start(one, one.spec.containers[0])
        assert plugin.asked("PreStartContainer") == []


@pytest.mark.spec("DP-8.32")
async def test_a_pod_without_devices_has_no_options(node: Node) -> None:
    async with plugged(node) as (manager, _):
        assert manager.options(PodUID("nobody"), MAIN) is None
        assert await manager.start(pod("nobody"), pod().spec.containers[0]) is None


def running_pod(uid: str, device: str) -> Pod:
    status = ContainerStatus(
        name=MAIN,
        state=ContainerState(running=ContainerStateRunning()),
        allocated_resources_status=(ResourceStatus(name=GPU, resources=(ResourceHealth(resource_id=device),)),),
    )
    return Pod(metadata=ObjectMeta(uid=uid), status=PodStatus(phase="Running", container_statuses=(status,)))


async def test_allocations_of_a_lost_checkpoint_are_learned_from_pod_statuses(node: Node) -> None:
    node.checkpoint.write_bytes(b"nonsense")
    async with plugged(node) as (manager, _):
        manager.learn([running_pod("u1", "dev-0")])
        assert held(manager, pod()) == {"dev-0"}
        assert await admit(manager, pod("u2")) == {"dev-1"}


async def test_the_plugin_of_learned_allocations_is_awaited_until_its_grace_period_is_over(node: Node) -> None:
    node.checkpoint.write_bytes(b"nonsense")
    async with node.manager(settings=Settings(grace=0.1)) as manager:
        manager.learn([running_pod("u1", "dev-0")])
        assert manager.pending_resources(pod("u2")) == (GPU,)
        assert manager.capacity().allocatable == {GPU: 0}
        with deadline():
            while manager.pending_resources(pod("u2")):
                await manager.changed()
        assert manager.capacity().removed == {GPU}


async def test_a_lost_answer_of_a_plugin_is_requested_again(node: Node) -> None:
    node.checkpoint.write_bytes(b"nonsense")
    async with plugged(node) as (manager, _):
        manager.learn([running_pod("u1", "dev-1")])
    async with plugged(node) as (manager, plugin):
        options = await manager.start(pod(), pod().spec.containers[0])
        assert options is not None and options.env and [call.ids for call in plugin.asked("Allocate")] == [("dev-1",)]
        assert await manager.start(pod(), pod().spec.containers[0]) == options and len(plugin.asked("Allocate")) == 1


async def test_a_container_starts_while_its_plugin_is_disconnected_if_it_needs_no_pre_start(node: Node) -> None:
    async with plugged(node) as (manager, plugin):
        await admit(manager, pod())
        await plugin.stop()
        await listed(manager, 0, 2)
        assert await manager.start(pod(), pod().spec.containers[0]) is not None


@pytest.mark.parametrize("ids", [{"DeviceIDs": ["dev-0", "dev-1"]}, {"DeviceIDs": ["dev-0", "", "dev-1"]}])
async def test_devices_of_a_checkpoint_between_1_8_and_1_9_are_allocated(node: Node, ids: dict[str, list[str]]) -> None:
    entry = {"PodUID": "u1", "ContainerName": "main", "ResourceName": GPU, **ids, "AllocResp": ""}
    node.checkpoint.write_text(json.dumps({"Entries": [entry]}))
    async with plugged(node) as (manager, _):
        assert held(manager, pod("u1", 2)) == {"dev-0", "dev-1"}
        with pytest.raises(NotAllocated):
            await admit(manager, pod("u2"))
        assert ["has no name" in report.message for report in node.reports] == [True] * ids["DeviceIDs"].count("")


async def test_a_checkpoint_that_cannot_be_written_refuses_the_pod(node: Node) -> None:
    async with plugged(node) as (manager, _):
        elsewhere = node.directory.rename(node.directory.with_name("elsewhere"))
        node.directory.write_text("in the way")
        with pytest.raises(Unavailable, match="cannot be written"):
            await admit(manager, pod())
        assert manager.allocated_counts() == {}
        node.directory.unlink()
        elsewhere.rename(node.directory)
        assert await admit(manager, pod()) == {"dev-0"}


@pytest.mark.spec("DP-8.37")
async def test_a_thousand_devices_that_flap_while_pods_come_and_go(node: Node) -> None:
    async with plugged(node, 1000) as (manager, plugin):

        async def flap() -> None:
            for number in range(20):
                plugin.set_devices(Device(each.id, "Unhealthy" if number % 2 else "Healthy") for each in numbered(1000))
                await manager.changed()

        async def come_and_go(uid: str) -> None:
            for _ in range(10):
                try:
                    await admit(manager, pod(uid))
                except NotAllocated:
                    await manager.changed()
                await manager.release(PodUID(uid))

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(come_and_go, f"u{number}")
            await flap()
            plugin.set_devices(1000)
            await listed(manager, 1000)
            tasks.cancel_scope.cancel()
        assert len({*manager.allocated_counts()}) <= 1
