import signal
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path

import grpc
import pytest

from devlet.errors import InvalidInput, PluginUnavailable
from devlet.kit.changes import Changes
from devlet.kit.parts import running
from devlet.kit.processes import RunningProcess, line, process
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.channels import Connection, connection
from devlet.plugins.device_plugin import Api, Offer, connected
from devlet.plugins.devices import Device, Grant, Options
from devlet.plugins.registration_server import RegistrationServer, remove_sockets
from devlet.testing import warm_start
from devlet.testing.fake_device_plugin import Call, FakeDevicePlugin, numbered
from devlet.testing.waiting import deadline
from devlet.wire.pluginregistration import api_pb2 as pb

pytestmark = pytest.mark.anyio

REGISTRATION = "/pluginregistration.Registration"


class Manager:
    """What a manager does about a plugin at first: it connects and reads a list."""

    def __init__(self) -> None:
        self.lists: list[tuple[Device, ...]] = []
        self._changes = Changes()

    async def register(self, offer: Offer) -> None:
        async with connected(offer) as plugin, aclosing(plugin.devices()) as devices:
            self.lists.append(await anext(devices))
        self._changes.notify()

    async def until_registered(self, times: int) -> None:
        await self._changes.until(lambda: len(self.lists) >= times)


@asynccontextmanager
async def serving(directory: Path, manager: Manager) -> AsyncIterator[None]:
    """As a manager that starts."""
    remove_sockets(directory)
    async with running(RegistrationServer(directory, manager.register).run):
        yield


def dialled(path: Path) -> AbstractAsyncContextManager[Connection]:
    return connection("p", path, within=60, max_message=1 << 20)


async def soon(done: Awaitable[object]) -> None:
    with deadline():
        await done


def test_devices_are_numbered_and_spread_over_the_nodes() -> None:
    assert numbered(3, (0, 1)) == (
        Device(DeviceID("dev-0"), nodes=(0,)),
        Device(DeviceID("dev-1"), nodes=(1,)),
        Device(DeviceID("dev-2"), nodes=(0,)),
    )


async def test_it_registers_and_lists_its_devices(root: Path) -> None:
    manager = Manager()
    async with serving(root, manager), FakeDevicePlugin(root, devices=3) as plugin:
        await plugin.register()
        assert manager.lists == [plugin.devices] == [numbered(3)]
        assert plugin.calls == [Call("GetDevicePluginOptions"), Call("ListAndWatch")]
        assert plugin.registrations == 1


async def test_without_manager_registering_fails(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin:
        with pytest.raises(grpc.aio.AioRpcError):
            await plugin.register()
        assert plugin.registrations == 0


async def test_every_open_stream_gets_a_new_list_and_later_ones_begin_with_it(root: Path) -> None:
    async with FakeDevicePlugin(root) as fake, connected(Offer(ResourceName(fake.resource), fake.path)) as plugin:
        async with aclosing(plugin.devices()) as one, aclosing(plugin.devices()) as other:
            await anext(one), await anext(other)
            assert fake.streams == 2
            fake.set_devices(1)
            assert await anext(one) == await anext(other) == numbered(1)
            with pytest.raises(InvalidInput, match="no gRPC status 'internal': did you mean 'INTERNAL'"):
                fake.end_streams("internal")
            fake.end_streams()
            fake.set_devices(4)
            async with aclosing(plugin.devices()) as later:
                assert await anext(later) == numbered(4)


async def test_by_default_it_prefers_what_must_be_and_then_the_first(root: Path) -> None:
    async with FakeDevicePlugin(root) as fake, connected(Offer(ResourceName(fake.resource), fake.path)) as plugin:
        ids = [DeviceID(id) for id in "cbad"]
        assert await plugin.preferred(ids, [DeviceID("d")], 3) == ("d", "a", "b")


async def test_a_crash_leaves_a_socket_without_listener_and_a_stop_leaves_none(root: Path) -> None:
    (root / "registry").mkdir()
    async with FakeDevicePlugin(root, registry=root / "registry") as plugin:
        paths = [plugin.path, root / "registry" / plugin.path.name]
        await plugin.crash()
        for path in paths:
            assert path.is_socket()
            with pytest.raises(PluginUnavailable, match="no listener"):
                async with connection("p", path, within=0.01, max_message=1):
                    pass
        await plugin.restart()
        for path in paths:
            async with dialled(path):
                pass
        await plugin.stop()
        await plugin.stop()
        assert not any(path.exists() for path in paths)


async def test_in_a_registry_it_says_what_it_is_and_hears_how_that_ended(root: Path) -> None:
    (root / "registry").mkdir()
    async with FakeDevicePlugin(root, registry=root / "registry") as plugin:
        async with dialled(root / "registry" / plugin.path.name) as registry:
            info = pb.PluginInfo.FromString(await registry.call(f"{REGISTRATION}/GetInfo", b"", timeout=60))
            assert (info.type, info.name, info.endpoint, list(info.supported_versions)) == (
                "DevicePlugin",
                "vendor.com/gpu",
                str(plugin.path),
                ["v1beta1"],
            )
            no = pb.RegistrationStatus(error="not now").SerializeToString()
            yes = pb.RegistrationStatus(plugin_registered=True).SerializeToString()
            for status in (no, yes):
                await registry.call(f"{REGISTRATION}/NotifyRegistrationStatus", status, timeout=60)
        await soon(plugin.until_registered())
        assert await plugin.until_refused() == "not now"
        assert plugin.statuses == [(False, "not now"), (True, "")]


async def test_with_one_socket_for_both_the_endpoint_is_empty(root: Path) -> None:
    async with FakeDevicePlugin(root, registry=root) as plugin, dialled(plugin.path) as registry:
        plugin.type, plugin.versions = "CSIPlugin", ["1.0", "2.0"]
        info = pb.PluginInfo.FromString(await registry.call(f"{REGISTRATION}/GetInfo", b"", timeout=60))
        assert (info.type, info.endpoint, list(info.supported_versions)) == ("CSIPlugin", "", ["1.0", "2.0"])


async def test_one_that_follows_registers_whenever_a_manager_starts(root: Path) -> None:
    manager = Manager()
    async with FakeDevicePlugin(root, follow=True) as plugin:
        for times in (1, 2, 3):
            async with serving(root, manager):
                await soon(plugin.until_registered(times))
            assert len(manager.lists) == times


async def test_one_that_follows_registers_with_a_manager_that_was_there_before(root: Path) -> None:
    async with serving(root, Manager()), FakeDevicePlugin(root, follow=True) as plugin:
        await soon(plugin.until_registered())


def program(root: Path, *flags: str) -> AbstractAsyncContextManager[RunningProcess]:
    words: list[str | Path] = [sys.executable, "-m", "devlet.testing.fake_device_plugin", "--directory", root, *flags]
    return process(words, log=root / "log", ready=line("plugin serving"), start=warm_start.start)


async def test_as_a_process_it_registers_again_when_the_manager_was_restarted(root: Path) -> None:
    manager = Manager()
    async with program(root, "--resource", "a.com/b", "--devices", "3", "--numa", "0,1"):
        for times in (1, 2):
            async with serving(root, manager):
                await soon(manager.until_registered(times))
    assert manager.lists == [numbered(3, (0, 1))] * 2


async def test_as_a_process_it_can_be_killed_and_its_connection_is_gone(root: Path) -> None:
    async with program(root, "--socket", "x.sock", "--pre-start", "--preferred-allocation") as child:
        async with connected(Offer(ResourceName("vendor.com/gpu"), root / "x.sock")) as plugin:
            assert (plugin.pid, plugin.options) == (child.pid, Options(True, True))
            async with aclosing(plugin.devices()) as devices:
                assert await anext(devices) == numbered(2)
                child.send_signal(signal.SIGKILL)
                with pytest.raises(PluginUnavailable), deadline():
                    await anext(devices)
    assert (root / "x.sock").is_socket()


async def test_as_a_process_it_removes_its_socket_when_it_is_ended(root: Path) -> None:
    async with program(root, "--api", "v1alpha2", "--socket", "x.sock") as child:
        async with connected(Offer(ResourceName("vendor.com/gpu"), root / "x.sock", Api.V1ALPHA2)) as plugin:
            assert (await plugin.allocate([DeviceID("dev-0")])).env == {"VENDOR_COM_GPU": "dev-0"}
        child.send_signal(signal.SIGTERM)
        assert await child.wait() == 0
    assert not (root / "x.sock").exists()


async def test_as_a_process_it_can_give_cdi_devices(root: Path) -> None:
    async with program(root, "--cdi", "--socket", "x.sock"):
        async with connected(Offer(ResourceName("vendor.com/gpu"), root / "x.sock")) as plugin:
            granted = await plugin.allocate([DeviceID("dev-0"), DeviceID("dev-1")])
    assert granted == Grant(cdi_devices=("vendor.com/gpu=dev-0", "vendor.com/gpu=dev-1"))


async def test_as_a_process_it_can_be_found_in_a_registry(root: Path) -> None:
    (root / "registry").mkdir()
    async with program(root, "--registry", str(root / "registry"), "--socket", "x.sock"):
        async with dialled(root / "registry" / "x.sock") as registry:
            info = pb.PluginInfo.FromString(await registry.call(f"{REGISTRATION}/GetInfo", b"", timeout=60))
            assert info.endpoint == str(root / "x.sock")
