from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from devlet.errors import NotAllocated, PluginUnavailable
from devlet.kit.clock import SystemClock
from devlet.node.devices.calls import AT_ONCE, PluginCalls
from devlet.node.devices.selection import Ask
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.device_plugin import DevicePlugin, Offer, connected
from devlet.plugins.devices import Grant
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline

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
