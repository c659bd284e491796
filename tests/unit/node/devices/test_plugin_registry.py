from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from devlet.errors import NotAllocated, PluginRefused, PluginUnavailable, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.parts import running
from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.node.devices.inventory import Inventory, Moment
from devlet.node.devices.plugin_connection import Settings
from devlet.node.devices.plugin_registry import AT_ONCE, PluginCalls, PluginRegistry
from devlet.node.devices.selection import Ask
from devlet.node.reports import Report
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins import device_plugin
from devlet.plugins.device_plugin import DevicePlugin, Offer, connected
from devlet.plugins.devices import Device, Grant, Options
from devlet.testing.fake_clock import FakeClock
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio

GPU = ResourceName("vendor.com/gpu")
QUICK = Settings(plugin=device_plugin.Settings(dial=2.0), reconnect=Backoff(0.01, 0.05))


def offer(plugin: FakeDevicePlugin) -> Offer:
    return Offer(ResourceName(plugin.resource), plugin.path, plugin.api)


async def value(read: Callable[[], object]) -> object:
    return read()


class Node:
    """A registry and what it needs."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self.directory = root
        self.clock = clock
        self.inventory = Inventory(300, 30)
        self.allocations = Allocations()
        self.saves = 0
        self.unwell: list[frozenset[PodUID]] = []
        self.reports: list[Report] = []
        self.plugins = PluginRegistry(
            self.inventory,
            self.allocations,
            clock,
            QUICK,
            save_soon=self._save_soon,
            on_health=self.unwell.append,
            report=self.reports.append,
        )

    def _save_soon(self) -> None:
        self.saves += 1

    def allocate(self, pod: str, device: str) -> None:
        by_node = {NO_NODE: (DeviceID(device),)}
        self.allocations.add(Allocation(PodUID(pod), ContainerName("main"), GPU, by_node, Grant()))

    def sockets(self) -> list[Path]:
        return [each.offer.socket for resource in self.inventory.resources() for each in resource.instances]

    async def listed(self, healthy: int, capacity: int | None = None) -> None:
        expected = (healthy if capacity is None else capacity, healthy)
        await until(self._counts, lambda seen: seen == expected)

    async def _counts(self) -> tuple[int | None, int | None]:
        found = self.inventory.capacity()
        return found.capacity.get(GPU), found.allocatable.get(GPU)


@asynccontextmanager
async def running_node(root: Path, clock: Clock | None = None) -> AsyncIterator[Node]:
    node = Node(root, clock or SystemClock())
    async with running(node.plugins.run):
        yield node


@asynccontextmanager
async def plugged(
    root: Path, devices: int = 2, options: Options = Options()
) -> AsyncIterator[tuple[Node, FakeDevicePlugin]]:
    async with running_node(root) as node, FakeDevicePlugin(root, GPU, devices, options=options) as plugin:
        await node.plugins.register(offer(plugin))
        await node.listed(devices)
        yield node, plugin


async def test_a_registered_plugin_is_called_until_it_disconnects(root: Path) -> None:
    async with plugged(root, options=Options(pre_start=True)) as (node, plugin):
        assert (await node.plugins.plugin(GPU).allocate([DeviceID("dev-0")])).env
        await plugin.stop()
        await node.listed(0, 2)
        with pytest.raises(NotAllocated, match="has been stopped"):
            node.plugins.plugin(GPU)
        assert node.plugins.options(GPU).pre_start


async def test_a_resource_that_is_not_known_has_neither_plugin_nor_options(root: Path) -> None:
    node = Node(root, SystemClock())
    with pytest.raises(NotAllocated, match="unknown Device Plugin"):
        node.plugins.plugin(GPU)
    with pytest.raises(NotAllocated, match="endpoint not found in cache"):
        node.plugins.options(GPU)


async def test_the_newest_connected_instance_is_called(root: Path) -> None:
    async with plugged(root) as (node, first):
        async with FakeDevicePlugin(root, GPU, 3, socket="new.sock") as second:
            await node.plugins.register(offer(second))
            await node.listed(3)
            assert node.plugins.plugin(GPU).offer == offer(second)
        await node.listed(2)
        assert node.plugins.plugin(GPU).offer == offer(first)


async def test_a_plugin_that_registers_again_replaces_itself(root: Path) -> None:
    async with plugged(root) as (node, plugin):
        before = node.plugins.plugin(GPU)
        await node.plugins.register(offer(plugin))
        assert node.plugins.plugin(GPU) is not before and node.sockets() == [plugin.path]
        with pytest.raises(PluginUnavailable):
            await until(partial(before.allocate, [DeviceID("dev-0")]), lambda grant: False)


async def test_an_instance_that_left_for_good_is_forgotten_once_another_takes_over(root: Path) -> None:
    async with plugged(root) as (node, first):
        async with FakeDevicePlugin(root, GPU, 2, socket="new.sock") as second:
            await node.plugins.register(offer(second))
            await node.listed(2)
            await first.stop()
            first.path.unlink(missing_ok=True)
            await until(partial(value, lambda: node.sockets() == [second.path]))


async def test_only_the_instance_whose_socket_was_removed_is_deregistered(root: Path) -> None:
    async with plugged(root) as (node, first):
        async with FakeDevicePlugin(root, GPU, 3, socket="new.sock") as second:
            await node.plugins.register(offer(second))
            await node.listed(3)
            node.plugins.deregister(offer(first))
            assert node.sockets() == [second.path]
            assert node.inventory.capacity().allocatable == {GPU: 3}


@pytest.mark.spec("DP-9.02")
async def test_a_failed_registration_keeps_the_old_instance(root: Path) -> None:
    async with plugged(root) as (node, plugin):
        with pytest.raises(PluginUnavailable):
            await node.plugins.register(Offer(GPU, root / "absent.sock"))
        assert node.inventory.capacity().allocatable == {GPU: 2}
        await plugin.stop()
        await node.listed(0, 2)


@pytest.mark.spec("DP-8.11")
async def test_a_plugin_without_options_is_not_registered(root: Path) -> None:
    async with running_node(root) as node, FakeDevicePlugin(root, GPU) as plugin:
        plugin.fail("GetDevicePluginOptions")
        with pytest.raises(PluginRefused):
            await node.plugins.register(offer(plugin))
        assert node.sockets() == [] and GPU not in node.inventory


async def test_a_plugin_cannot_be_registered_while_the_registry_does_not_run(root: Path) -> None:
    with pytest.raises(Unavailable):
        await Node(root, SystemClock()).plugins.register(Offer(GPU, root / "x.sock"))


async def test_a_list_that_is_not_accepted_is_reported(root: Path) -> None:
    async with plugged(root) as (node, plugin):
        plugin.send(b"\xff\xff\xff")
        await until(partial(value, lambda: node.reports))
        report = node.reports[0]
        assert report.reason == "DevicePluginListFailed" and f"{GPU} at {plugin.path} is not accepted" in report.message


async def test_changes_are_saved_and_wake_waiting_tasks_and_name_the_pods(root: Path) -> None:
    async with plugged(root) as (node, plugin):
        node.allocate("u1", "dev-0")
        saves = node.saves
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(node.plugins.changed)
            plugin.set_devices([Device(DeviceID("dev-0"), "Unhealthy"), Device(DeviceID("dev-1"))])
        assert node.unwell == [frozenset({"u1"})] and node.saves > saves


async def test_a_plugin_that_keeps_reconnecting_leaves_one_timer(root: Path) -> None:
    clock = FakeClock()
    async with running_node(root, clock) as node, FakeDevicePlugin(root, GPU, 2) as plugin:
        for _ in range(5):
            await node.plugins.register(offer(plugin))
            await node.listed(2)
            node.plugins.deregister(offer(plugin))
        await clock.sleeping(1)
        assert len(clock.wakes_at) == 1


async def test_expected_resources_lose_their_health_first_and_expire_later(root: Path) -> None:
    clock = FakeClock()
    async with running_node(root, clock) as node:
        node.allocate("u1", "dev-0")
        node.plugins.expect([GPU])
        await clock.sleeping(1)
        await clock.advance(29)
        assert node.unwell == []
        await clock.advance(2)
        assert node.unwell == [frozenset({"u1"})] and GPU in node.inventory
        await clock.advance(300)
        assert node.unwell == [frozenset({"u1"})] * 2 and GPU not in node.inventory and node.saves == 1


async def test_a_known_resource_is_not_expected_again(root: Path) -> None:
    async with plugged(root) as (node, _):
        node.plugins.expect([GPU])
        resource = node.inventory.get(GPU)
        assert resource is not None and resource.stopped is None and len(resource.devices) == 2


async def test_restored_resources_expire_after_the_start(root: Path) -> None:
    clock = FakeClock()
    node = Node(root, clock)
    node.inventory.restore([GPU], Moment(clock.now(), clock.monotonic()))
    async with running(node.plugins.run):
        await clock.sleeping(1)
        await clock.advance(301)
        assert node.inventory.capacity().removed == {GPU}


pytestmark = pytest.mark.anyio

GPU = ResourceName("vendor.com/gpu")
ID = DeviceID("dev-0")


class Plugins:
    """The current plugin of the resource, which tests replace."""

    def __init__(self) -> None:
        self.current: DevicePlugin | None = None
        self.observed: list[ResourceName] = []
        self.calls = PluginCalls(self.plugin, SystemClock(), lambda resource, seconds: self.observed.append(resource))

    def plugin(self, resource: ResourceName) -> DevicePlugin:
        if self.current is None:
            raise NotAllocated(f"endpoint {resource} has been stopped")
        return self.current


@asynccontextmanager
async def connection(plugins: Plugins, plugin: FakeDevicePlugin) -> AsyncIterator[None]:
    async with connected(Offer(GPU, plugin.path)) as plugins.current:
        yield


async def test_a_call_without_a_plugin_is_not_allocated() -> None:
    with pytest.raises(NotAllocated, match="has been stopped"):
        await Plugins().calls.allocate(GPU, [ID])


async def test_a_call_that_was_cut_off_is_repeated_on_the_newer_connection(root: Path) -> None:
    plugins = Plugins()
    grants: list[Grant] = []

    async def allocate() -> None:
        grants.append(await plugins.calls.allocate(GPU, [ID]))

    with deadline():
        async with FakeDevicePlugin(root) as plugin, connected(Offer(GPU, plugin.path)) as newer:
            async with anyio.create_task_group() as tasks:
                async with connection(plugins, plugin):
                    plugin.hang("Allocate")
                    tasks.start_soon(allocate)
                    await plugin.until_asked("Allocate")
                    plugins.current = newer
                await plugin.until_asked("Allocate", 2)
                plugin.recover("Allocate")
    assert len(grants) == 1 and grants[0].env and plugins.observed == [GPU]


async def test_a_call_that_was_cut_off_without_a_newer_connection_is_an_error(root: Path) -> None:
    plugins = Plugins()
    async with FakeDevicePlugin(root) as plugin:
        async with connection(plugins, plugin):
            pass
        with pytest.raises(PluginUnavailable):
            await plugins.calls.allocate(GPU, [ID])


async def test_errors_of_preferred_and_pre_start_name_the_call(root: Path) -> None:
    plugins = Plugins()
    async with FakeDevicePlugin(root) as plugin, connection(plugins, plugin):
        plugin.fail("GetPreferredAllocation", text="no idea")
        plugin.fail("PreStartContainer", text="no power")
        with pytest.raises(NotAllocated, match=r"GetPreferredAllocation rpc failed with err: .*no idea"):
            await plugins.calls.preferred(GPU, Ask((ID,), (), 1))
        with pytest.raises(NotAllocated, match=r"PreStartContainer rpc failed with err: .*no power"):
            await plugins.calls.pre_start(GPU, [ID])


async def test_concurrent_allocations_are_limited(root: Path) -> None:
    plugins = Plugins()
    async with FakeDevicePlugin(root) as plugin, connection(plugins, plugin):
        plugin.hang("Allocate")
        with deadline():
            async with anyio.create_task_group() as tasks:
                for _ in range(AT_ONCE + 1):
                    tasks.start_soon(plugins.calls.allocate, GPU, [ID])
                await plugin.until_asked("Allocate", AT_ONCE)
                await anyio.wait_all_tasks_blocked()
                assert len(plugin.asked("Allocate")) == AT_ONCE
                plugin.recover("Allocate")
        assert len(plugin.asked("Allocate")) == AT_ONCE + 1
