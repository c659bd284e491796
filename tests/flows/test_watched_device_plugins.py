"""Device plugins that are found in the registry directory, from their socket to what the node has of their devices."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.devices.manager import DeviceManager
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.device_plugin_handler import TYPE, DevicePluginHandler
from devlet.plugins.devices import Device, Options
from devlet.plugins.registration import PluginWatcher
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio
GPU = ResourceName("vendor.com/gpu")


class Node:
    """A device manager without a Registration service: plugins have to be found."""

    def __init__(self, root: Path) -> None:
        self.registry = root / "plugins_registry"
        self.registry.mkdir()
        (root / "device-plugins").mkdir()
        self.devices = DeviceManager(root / "device-plugins", SystemClock())
        handler = DevicePluginHandler(self.devices.register, self.devices.deregister)
        self.watcher = PluginWatcher(self.registry, {TYPE: handler}, clock=SystemClock())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with running(self.devices.run), running(self.watcher.run):
            yield

    def plugin(self, socket: str, devices: int | list[Device], options: Options = Options()) -> FakeDevicePlugin:
        return FakeDevicePlugin(self.registry, GPU, devices, socket=socket, registry=self.registry, options=options)

    async def until(self, capacity: int, allocatable: int, ids: set[str] | None = None) -> None:
        with deadline():
            while self._state(ids is not None) != (capacity, allocatable, ids):
                await self.devices.changed()

    def _state(self, with_ids: bool) -> tuple[int | None, int | None, set[DeviceID] | None]:
        have = self.devices.capacity()
        ids = {device.id for device in self.devices.allocatable_devices().get(GPU, ())} if with_ids else None
        return have.capacity.get(GPU), have.allocatable.get(GPU), ids


@pytest.fixture
def node(root: Path) -> Node:
    return Node(root)


@pytest.mark.spec("DP-8.06")
@pytest.mark.parametrize("options", [Options(a, b) for a in (False, True) for b in (False, True)])
async def test_instances_that_follow_each_other_are_seen_without_a_register_call(node: Node, options: Options) -> None:
    async with node.running(), node.plugin("first.sock", 2, options) as first:
        await node.until(2, 2, {"dev-0", "dev-1"})
        async with node.plugin("second.sock", 2, options) as second:
            await second.until_registered()
            await node.until(2, 2, {"dev-0", "dev-1"})
            async with node.plugin("third.sock", [Device(DeviceID("other"))], options) as third:
                await node.until(1, 1, {"other"})
                assert [plugin.registrations for plugin in (first, second, third)] == [0, 0, 0]


@pytest.mark.spec("DP-8.02")
async def test_the_node_starts_and_stops_again_and_again_beside_a_watched_plugin(node: Node) -> None:
    async with node.plugin("gpu.sock", 2):
        for _ in range(2):
            async with node.running():
                await node.until(2, 2)


async def test_a_plugin_that_goes_and_comes_back_has_its_devices_again(node: Node) -> None:
    async with node.running(), node.plugin("gpu.sock", 2) as plugin:
        await node.until(2, 2)
        await plugin.stop()
        await node.until(2, 0)
        await plugin.start()
        await node.until(2, 2)
