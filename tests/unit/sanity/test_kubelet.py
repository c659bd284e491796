"""The suite's kubelet takes registrations in both ways, and can be told to behave badly."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import grpc
import pytest

from devlet.plugins.device_plugin import Api
from devlet.sanity.kubelet import Kubelet, Settings
from devlet.testing.fake_device_plugin import FakeDevicePlugin

pytestmark = pytest.mark.anyio

WITHIN = 60.0


@asynccontextmanager
async def kubelet(root: Path, below: Path | None = None) -> AsyncIterator[Kubelet]:
    (root / "registry").mkdir()
    (root / "dp").mkdir()
    async with anyio.create_task_group() as tasks:
        made = Kubelet(root / "dp", root / "registry", tasks, Settings(dial=0.5, below=below))
        await made.start()
        try:
            yield made
        finally:
            await made.stop()
            tasks.cancel_scope.cancel()


async def test_what_was_registered_can_be_called_and_is_watched(root: Path) -> None:
    async with kubelet(root) as made, FakeDevicePlugin(root / "dp", "v.com/led", 2) as plugin:
        await plugin.register()
        client = made.plugins["v.com/led"]
        assert await client.healthy() == ["dev-0", "dev-1"]
        answer = await client.allocate(["dev-0"], ["dev-1"])
        assert [dict(one.envs) for one in answer.container_responses] == [
            {"V_COM_LED": "dev-0"},
            {"V_COM_LED": "dev-1"},
        ]
        [registration] = made.registrations
        assert (registration.versions, registration.endpoint) == (("v1beta1",), "v_com_led.sock")


async def test_one_of_the_registry_directory_is_greeted_by_each_kubelet(root: Path) -> None:
    async with (
        kubelet(root) as made,
        FakeDevicePlugin(root / "registry", "v.com/led", registry=root / "registry") as plugin,
    ):
        await plugin.until_registered()
        await made.until(1, WITHIN)
        await made.stop()
        await made.start()
        await plugin.until_registered(2)
        assert await made.until(2, WITHIN)
        assert [each.type for each in made.registrations] == ["DevicePlugin", "DevicePlugin"]


async def test_one_of_the_registry_directory_that_serves_outside_of_the_root_is_not_called(root: Path) -> None:
    own = root / "r"
    own.mkdir()
    plugin = FakeDevicePlugin(own / "registry", "v.com/led", registry=own / "registry")
    plugin.endpoint = str(root / "elsewhere.sock")
    async with kubelet(own, below=own) as made, plugin:
        assert "is not below devlet's root" in await plugin.until_refused()
        assert not made.plugins


async def test_one_that_does_not_answer_at_once_is_greeted_again(root: Path) -> None:
    plugin = FakeDevicePlugin(root / "registry", "v.com/led", registry=root / "registry")
    plugin.fail("GetInfo", "UNAVAILABLE", "not yet")
    async with kubelet(root) as made, plugin:
        assert await made.registrations.until(lambda: made.count > 0, WITHIN)
        plugin.recover("GetInfo")
        assert await made.until(1, WITHIN)
        first, last = made.registrations[0], made.registrations[-1]
        assert [each.is_introduced for each in (first, last)] == [False, True]


async def test_as_many_registrations_are_refused_as_requested(root: Path) -> None:
    async with kubelet(root) as made, FakeDevicePlugin(root / "dp") as plugin:
        made.refusals = 1
        with pytest.raises(grpc.aio.AioRpcError, match="refused on purpose"):
            await plugin.register()
        await plugin.register()
        assert (made.count, made.taken) == (2, 1)


async def test_one_that_does_not_serve_is_refused_with_the_reason(root: Path) -> None:
    async with kubelet(root) as made:
        plugin = FakeDevicePlugin(root / "dp")
        with pytest.raises(grpc.aio.AioRpcError, match="failed to dial device plugin"):
            await plugin.register()
        assert made.taken == 0


async def test_an_old_api_is_recognised_and_refused(root: Path) -> None:
    async with kubelet(root) as made, FakeDevicePlugin(root / "dp", api=Api.V1ALPHA2) as plugin:
        with pytest.raises(grpc.aio.AioRpcError, match=r"Kubernetes 1\.8 and 1\.9"):
            await plugin.register()
        assert made.registrations[0].package == "deviceplugin"


async def test_a_start_removes_the_sockets_of_plugins(root: Path) -> None:
    async with kubelet(root) as made, FakeDevicePlugin(root / "dp") as plugin:
        await made.stop()
        await made.start()
        assert not plugin.path.exists()


async def test_a_plugin_in_the_registry_directory_can_be_asked_and_refused(root: Path) -> None:
    async with (
        kubelet(root) as made,
        FakeDevicePlugin(root / "registry", "v.com/led", registry=root / "registry") as plugin,
    ):
        assert await made.until(1, WITHIN)
        assert (await made.ask(plugin.path)).name == "v.com/led"
        await made.stop()
        made.refusals = 1
        await made.start()
        assert await made.until(2, WITHIN)
        assert [bool(each.problem) for each in made.registrations] == [False, True, False]
        assert [registered for registered, _ in plugin.statuses] == [True, False, True]
