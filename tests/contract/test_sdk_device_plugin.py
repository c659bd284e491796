"""Plugins of the SDK and the device manager at the two ends of real sockets."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import grpc
import pytest

from devlet.errors import PluginRefused
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.devices.manager import DeviceManager
from devlet.node.devices.records import PluginState
from devlet.objects.identifiers import ContainerName, ResourceName
from devlet.objects.types.container import Container, ResourceRequirements
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec
from devlet.plugins.device_plugin import Offer, connected
from devlet.plugins.device_plugin_handler import TYPE, DevicePluginHandler
from devlet.plugins.devices import Options
from devlet.plugins.registration import PluginWatcher
from devlet.plugins.registration_server import RegistrationServer, remove_sockets
from devlet.sdk.board import Board
from devlet.sdk.device_plugin import DevicePlugin, PluginOptions
from devlet.sdk.values import DeviceNode, Grant, Mount, PluginDevice
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

MAIN = ContainerName("main")


class Leds(DevicePlugin):
    """Lists what `show` says."""

    resource = "example.com/led"

    def __init__(self, *ids: str) -> None:
        self._board: Board[Sequence[PluginDevice]] = Board()
        self.show(*map(PluginDevice, ids))
        self.allocated: list[Sequence[str]] = []

    def show(self, *devices: PluginDevice) -> None:
        self._board.show(devices)

    def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        return self._board.values()

    async def allocate(self, ids: Sequence[str]) -> Grant:
        self.allocated.append(ids)
        return Grant(
            env={"LEDS": ",".join(ids)},
            devices=["/dev/null", DeviceNode("/dev/led", "/dev/light", "r")],
            mounts=[Mount("/run/led")],
            annotations={"led": "on"},
            cdi_devices=["example.com/led=red"],
        )


class Fans(Leds):
    """Prefers the last ones, and hears of every start."""

    resource = "example.com/fan"

    def __init__(self, *ids: str) -> None:
        super().__init__(*ids)
        self.started: list[Sequence[str]] = []

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        return sorted(available)[-size:]

    async def pre_start(self, ids: Sequence[str]) -> None:
        self.started.append(ids)


class Node:
    """The device half of a node: it may be restarted, and then removes all sockets as a kubelet does."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "device-plugins"
        self.registry = root / "plugins_registry"
        self.offers: list[Offer] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[DeviceManager]:
        self.directory.mkdir(exist_ok=True)
        remove_sockets(self.directory)
        manager = DeviceManager(self.directory, SystemClock())

        async def register(offer: Offer) -> None:
            await manager.register(offer)
            self.offers.append(offer)

        handler = DevicePluginHandler(register, manager.deregister)
        watcher = PluginWatcher(self.registry, {TYPE: handler}, clock=SystemClock())
        async with running(manager.run), running(RegistrationServer(self.directory, register).run):
            async with running(watcher.run):
                yield manager


@pytest.fixture
def node(root: Path) -> Node:
    return Node(root)


@asynccontextmanager
async def served(*plugins: DevicePlugin, node: Node, found: bool = False) -> AsyncIterator[None]:
    """All in one task group."""
    options = PluginOptions(node.directory, registry=node.registry if found else None, retry=0.02, retry_limit=0.1)
    async with anyio.create_task_group() as tasks:
        for plugin in plugins:
            await tasks.start(partial(plugin.run, options))
        yield
        tasks.cancel_scope.cancel()


async def knows(manager: DeviceManager, plugin: DevicePlugin, healthy: int, unhealthy: int = 0) -> None:
    async def counts() -> list[tuple[int, int]]:
        return [
            (record.healthy, record.unhealthy)
            for record in manager.plugin_records()
            if record.resource == plugin.resource and record.state is PluginState.CONNECTED
        ]

    await until(counts, lambda seen: seen == [(healthy, unhealthy)])


def pod(resource: str, count: int, uid: str = "u1") -> Pod:
    limits = ResourceRequirements(limits={resource: str(count)})
    container = Container(name=MAIN, resources=limits)
    return Pod(metadata=ObjectMeta(uid=uid, name=uid, namespace="default"), spec=PodSpec(containers=(container,)))


async def admit(manager: DeviceManager, one: Pod) -> list[str]:
    async with manager.attempt(one) as attempt:
        await attempt.allocate(one.spec.containers[0], None)
        await attempt.commit()
    return sorted(id for ids in manager.container_devices(one.uid, MAIN).values() for id in ids)


@pytest.mark.spec("DP-2.6")
@pytest.mark.parametrize("found", [False, True], ids=["it registers", "it is found"])
async def test_lists_and_their_health_arrive_as_they_change(node: Node, found: bool) -> None:
    leds = Leds("red", "green")
    async with node.running() as manager, served(leds, node=node, found=found):
        await knows(manager, leds, 2)
        leds.show(PluginDevice("red", health="Unhealthy"), PluginDevice("green", numa_nodes=(0, 1)))
        await knows(manager, leds, 1, 1)
        [device] = manager.allocatable_devices()[ResourceName(leds.resource)]
        assert (device.id, device.nodes) == ("green", (0, 1))
        leds.show()
        await knows(manager, leds, 0)


@pytest.mark.spec("DP-1.1")
async def test_a_container_gets_what_the_plugin_grants(node: Node) -> None:
    leds = Leds("red", "green")
    async with node.running() as manager, served(leds, node=node):
        await knows(manager, leds, 2)
        one = pod(leds.resource, 2)
        assert await admit(manager, one) == ["green", "red"]
        options = await manager.start(one, one.spec.containers[0])
    assert options is not None
    assert dict(options.env) == {"LEDS": "green,red"}
    assert [(d.host_path, d.container_path, d.permissions) for d in options.devices] == [
        ("/dev/null", "/dev/null", "rw"),
        ("/dev/led", "/dev/light", "r"),
    ]
    assert [(m.host_path, m.container_path, m.read_only) for m in options.mounts] == [("/run/led", "/run/led", True)]
    assert (dict(options.annotations), list(options.cdi_devices)) == ({"led": "on"}, ["example.com/led=red"])


@pytest.mark.spec("DP-1.1")
async def test_what_is_overridden_is_asked_for(node: Node) -> None:
    leds, fans = Leds("red"), Fans("a", "b", "c")
    async with node.running() as manager, served(leds, fans, node=node):
        await knows(manager, leds, 1)
        await knows(manager, fans, 3)
        options = {record.resource: record.options for record in manager.plugin_records()}
        one = pod(fans.resource, 2)
        assert await admit(manager, one) == ["b", "c"]
        await manager.start(one, one.spec.containers[0])
    assert options == {leds.resource: Options(), fans.resource: Options(True, True)}
    assert [sorted(ids) for ids in fans.started] == [["b", "c"]]


@pytest.mark.spec("DP-3.2")
@pytest.mark.parametrize("found", [False, True], ids=["it registers", "it is found"])
async def test_plugins_of_one_process_come_back_after_each_restart_of_the_node(node: Node, found: bool) -> None:
    leds, fans = Leds("red"), Fans("a", "b")
    async with served(leds, fans, node=node, found=found):
        for life in range(3):
            async with node.running() as manager:
                await knows(manager, leds, 1)
                await knows(manager, fans, 2)
                assert await admit(manager, pod(leds.resource, 1, "u")) == ["red"]
            assert len(node.offers) >= 2 * (life + 1)


async def test_a_plugin_that_was_there_first_registers_when_the_node_comes(node: Node) -> None:
    leds = Leds("red")
    async with served(leds, node=node), node.running() as manager:
        await knows(manager, leds, 1)


@pytest.mark.spec("DP-3.2")
@pytest.mark.parametrize("found", [False, True], ids=["it registers", "it is found"])
async def test_a_socket_that_is_deleted_comes_back_and_is_registered(node: Node, found: bool) -> None:
    leds = Leds("red")
    async with node.running() as manager, served(leds, node=node, found=found):
        await knows(manager, leds, 1)
        node.offers[0].socket.unlink()

        async def offers() -> int:
            return len(node.offers)

        await until(offers, lambda count: count == 2)
        await knows(manager, leds, 1)
        assert node.offers[1].socket.is_socket()


async def test_a_plugin_registers_at_a_new_kubelet_socket_even_if_its_own_stayed(node: Node) -> None:
    offers: list[Offer] = []
    heard = anyio.Event()

    async def register(offer: Offer) -> None:
        offers.append(offer)
        heard.set()

    leds = Leds("red")
    async with served(leds, node=node):
        for life in range(1, 4):
            heard = anyio.Event()
            async with running(RegistrationServer(node.directory, register).run):
                await heard.wait()
            assert offers == offers[:1] * life


async def test_a_plugin_that_ends_leaves_no_socket_and_is_away_at_once(node: Node) -> None:
    leds = Leds("red")
    async with node.running() as manager:
        async with served(leds, node=node):
            await knows(manager, leds, 1)

        async def states() -> list[PluginState]:
            return [record.state for record in manager.plugin_records()]

        await until(states, lambda seen: seen == [PluginState.DISCONNECTED])
        assert not node.offers[0].socket.exists()


async def test_a_bad_request_gets_an_error_and_does_not_affect_others(node: Node) -> None:
    leds = Leds("red")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(served(leds, node=node))
        offer = Offer(ResourceName(leds.resource), node.directory / "example.com_led.sock")
        plugin = await stack.enter_async_context(connected(offer))
        with pytest.raises(PluginRefused, match=r"example\.com/led has no device blue: it is not in the newest list"):
            await plugin.allocate(["blue"])  # type: ignore[list-item]
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"unix:{offer.socket}"))
        call: Any = channel.unary_unary("/v1beta1.DevicePlugin/Allocate")
        with pytest.raises(grpc.aio.AioRpcError, match="the request is not a valid AllocateRequest"):
            await call(b"\xff\xff")
        assert (await plugin.allocate(["red"])).env == {"LEDS": "red"}  # type: ignore[list-item]
    assert leds.allocated == [("red",)]
