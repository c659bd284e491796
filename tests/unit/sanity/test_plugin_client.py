"""Answers are kept as they came; what cannot be decoded is an error of the plugin."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from devlet.errors import PluginUnavailable
from devlet.plugins.devices import Device, Options
from devlet.sanity.check import CannotTell, Garbled
from devlet.sanity.plugin_client import PluginClient, connected
from devlet.testing.fake_device_plugin import FakeDevicePlugin

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def client(plugin: FakeDevicePlugin) -> AsyncIterator[PluginClient]:
    async with anyio.create_task_group() as tasks:
        async with connected(plugin.resource, plugin.path, tasks, dial=5.0, answer=5.0) as made:
            made.start_watch()
            yield made
        tasks.cancel_scope.cancel()


async def test_each_call_is_made_as_a_kubelet_makes_it(root: Path) -> None:
    async with FakeDevicePlugin(root, devices=3, options=Options(True, True)) as plugin, client(plugin) as made:
        options = await made.options()
        assert (options.pre_start_required, options.get_preferred_allocation_available) == (True, True)
        assert await made.preferred(["dev-0", "dev-1"], ["dev-1"], 1) == ["dev-1"]
        await made.pre_start(["dev-2"])
        assert plugin.asked("PreStartContainer")[0].ids == ("dev-2",)


async def test_an_answer_that_is_not_protobuf_is_an_error_of_the_plugin(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, client(plugin) as made:
        plugin.answer("Allocate", b"\xff")
        with pytest.raises(Garbled, match="cannot be decoded as v1beta1"):
            await made.allocate(["dev-0"])


async def test_too_few_healthy_devices_tell_nothing(root: Path) -> None:
    devices = [Device(type(each.id)(each.id), "Unhealthy") for each in FakeDevicePlugin(root).devices]
    async with FakeDevicePlugin(root, devices=devices) as plugin, client(plugin) as made:
        with pytest.raises(CannotTell, match="0 healthy devices, and this check needs 1"):
            await made.healthy()


async def test_without_a_listener_there_is_no_client(root: Path) -> None:
    async with anyio.create_task_group() as tasks:
        with pytest.raises(PluginUnavailable):
            async with connected("x", root / "no.sock", tasks, dial=0.1, answer=1.0):
                pass


async def test_unread_streams_stay_open_for_a_while(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin, client(plugin) as made:
        await made.devices()
        async with made.unread_streams(2):
            await plugin.until_streams(3)
        await plugin.until_streams(1)


async def test_allocate_and_pre_start_may_take_as_long_as_a_kubelet_waits(root: Path) -> None:
    async with FakeDevicePlugin(root, options=Options(True, True)) as plugin, anyio.create_task_group() as tasks:
        async with connected(plugin.resource, plugin.path, tasks, dial=5.0, answer=0.1) as made:
            for method in ("GetDevicePluginOptions", "PreStartContainer", "Allocate"):
                plugin.hang(method)
            with pytest.raises(PluginUnavailable, match=r"within 0\.1 s"):
                await made.options()
            with pytest.raises(PluginUnavailable, match=r"within 0\.3 s"):
                await made.pre_start(["dev-0"])
            with pytest.raises(PluginUnavailable, match=r"within 0\.6 s"):
                await made.allocate(["dev-0"])
            for method in ("GetDevicePluginOptions", "PreStartContainer", "Allocate"):
                plugin.recover(method)
        tasks.cancel_scope.cancel()
