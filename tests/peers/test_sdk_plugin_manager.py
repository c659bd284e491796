"""Device plugins of the SDK with the kubelet's own plugin manager and device manager: those that register themselves,
and those that are found."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.errors import InvalidInput
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.sdk.board import Board
from devlet.sdk.device_plugin import DevicePlugin, PluginOptions
from devlet.sdk.values import HEALTHY, UNHEALTHY, DeviceNode, Grant, Mount, PluginDevice
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import until
from tests.support.peers.kubelet_plugins import KubeletPlugins, kubelet_plugins

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

BOTH = pytest.mark.parametrize("way", ["registers", "is-found"])


class Leds(DevicePlugin):
    def __init__(self, resource: str = "example.com/led", **devices: str) -> None:
        self.resource = resource
        self._board: Board[Sequence[PluginDevice]] = Board()
        self.show(**devices)
        self.reset: list[list[str]] = []  # at each start of a container
        self.fault = ""

    def show(self, **devices: str) -> None:
        self._board.show([PluginDevice(id, health) for id, health in devices.items()])

    def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        return self._board.values()

    async def allocate(self, ids: Sequence[str]) -> Grant:
        return Grant(
            env={"LED": ",".join(ids)},
            devices=[DeviceNode("/dev/null", "/dev/led", "r")],
            mounts=[Mount("/run/led")],
            annotations={"led": "on"},
            cdi_devices=["example.com/led=red"],
        )

    async def pre_start(self, ids: Sequence[str]) -> None:
        if self.fault:
            raise InvalidInput(self.fault)
        self.reset.append(list(ids))


@pytest.fixture
async def kubelet(peers: "Peers", root: Path) -> AsyncIterator[Restarts[KubeletPlugins]]:
    peers.need("kubelet-plugins")
    async with Restarts(partial(kubelet_plugins, peers.binaries, root)) as running:
        yield running


def options(root: Path, way: str) -> PluginOptions:
    return PluginOptions(root / "device-plugins", root / "plugins_registry" if way == "is-found" else None)


def pod(uid: str, **resources: int) -> Document:
    """Resources are of example.com."""
    limits = {f"example.com/{name}": str(count) for name, count in resources.items()}
    container = {"name": "main", "resources": {"limits": limits, "requests": limits}}
    return {"metadata": {"name": uid, "namespace": "default", "uid": uid}, "spec": {"containers": [container]}}


async def until_capacity(kubelet: Restarts[KubeletPlugins], resource: str, devices: int, healthy: int) -> None:
    await until(lambda: kubelet.running.capacity(), lambda found: found.get(resource) == (devices, healthy))


async def is_usable(kubelet: Restarts[KubeletPlugins], resource: str) -> bool:
    return (await kubelet.running.capacity()).get(resource, (0, 0))[1] > 0


@asynccontextmanager
async def served(
    kubelet: Restarts[KubeletPlugins], root: Path, way: str, *plugins: DevicePlugin
) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for plugin in plugins:
            await stack.enter_async_context(running(partial(plugin.run, options(root, way))))
        for plugin in plugins:
            await until(partial(is_usable, kubelet, plugin.resource))
        yield


@pytest.mark.spec("DP-1.1")
@pytest.mark.spec("DP-2.6")
@BOTH
async def test_a_container_gets_what_the_plugin_granted_and_its_devices_are_reset(
    kubelet: Restarts[KubeletPlugins], root: Path, way: str
) -> None:
    plugin = Leds(red=HEALTHY, green=UNHEALTHY)
    async with served(kubelet, root, way, plugin):
        await until_capacity(kubelet, plugin.resource, 2, 1)
        await kubelet.running.admit(pod("one", led=1))
        assert plugin.reset == []
        container = (await kubelet.running.start(pod("one", led=1)))["main"]
    assert plugin.reset == [["red"]]
    assert (container.env, container.annotations, container.cdi) == (
        {"LED": "red"},
        {"led": "on"},
        ["example.com/led=red"],
    )
    [device], [mount] = container.devices or (), container.mounts or ()
    assert device == {"PathOnHost": "/dev/null", "PathInContainer": "/dev/led", "Permissions": "r"}
    assert (mount["HostPath"], mount["ContainerPath"], mount["ReadOnly"]) == ("/run/led", "/run/led", True)


async def test_a_container_whose_devices_cannot_be_reset_does_not_start(
    kubelet: Restarts[KubeletPlugins], root: Path
) -> None:
    plugin = Leds(red=HEALTHY)
    async with served(kubelet, root, "registers", plugin):
        await kubelet.running.admit(pod("one", led=1))
        plugin.fault = "red is stuck: unplug it"
        with pytest.raises(InvalidInput, match="red is stuck: unplug it"):
            await kubelet.running.start(pod("one", led=1))
        plugin.fault = ""
        for _ in range(2):  # as after a crash of the container
            await kubelet.running.start(pod("one", led=1))
    assert plugin.reset == [["red"], ["red"]]


@BOTH
async def test_a_kubelet_that_was_killed_has_the_devices_back(
    kubelet: Restarts[KubeletPlugins], root: Path, way: str
) -> None:
    led, fan = Leds(red=HEALTHY, green=HEALTHY), Leds("example.com/fan", left=HEALTHY)
    async with served(kubelet, root, way, led, fan):
        await kubelet.running.admit(pod("one", led=2, fan=1))
        for number in (1, 2):
            await kubelet.kill()
            await kubelet.start()
            await until_capacity(kubelet, led.resource, 2, 2)
            await until_capacity(kubelet, fan.resource, 1, 1)
            await kubelet.running.admit(pod("one", led=2, fan=1))  # as the kubelet does for each of its pods
            await kubelet.running.start(pod("one", led=2, fan=1))
            assert (len(led.reset), fan.reset) == (number, [["left"]] * number)
        with pytest.raises(InvalidInput, match="requested number of devices unavailable"):
            await kubelet.running.admit(pod("two", led=1))
    assert {tuple(sorted(each)) for each in led.reset} == {("green", "red")}


@BOTH
async def test_a_plugin_that_comes_back_has_its_devices_back(
    kubelet: Restarts[KubeletPlugins], root: Path, way: str
) -> None:
    for _ in range(2):
        plugin = Leds(red=HEALTHY, green=HEALTHY)
        async with served(kubelet, root, way, plugin):
            await until_capacity(kubelet, plugin.resource, 2, 2)
        await until_capacity(kubelet, plugin.resource, 2, 0)


async def test_the_health_of_a_device_is_in_the_status_of_its_pod(
    kubelet: Restarts[KubeletPlugins], root: Path
) -> None:
    plugin = Leds(red=HEALTHY, green=HEALTHY)
    async with served(kubelet, root, "registers", plugin):
        await kubelet.running.admit(pod("one", led=2))

        async def told() -> dict[str, str]:
            [status] = (await kubelet.running.health(pod("one", led=2)))["main"] or [{"resources": []}]
            return {each["resourceID"]: each["health"] for each in status["resources"]}

        assert await told() == {"red": HEALTHY, "green": HEALTHY}
        plugin.show(red=HEALTHY, green=UNHEALTHY)
        await until(told, lambda found: found == {"red": HEALTHY, "green": UNHEALTHY})


async def test_plugins_of_both_ways_serve_one_pod(kubelet: Restarts[KubeletPlugins], root: Path) -> None:
    led, fan = Leds(red=HEALTHY), Leds("example.com/fan", left=HEALTHY)
    async with served(kubelet, root, "registers", led), served(kubelet, root, "is-found", fan):
        await kubelet.running.admit(pod("one", led=1, fan=1))
        await kubelet.running.start(pod("one", led=1, fan=1))
    assert (led.reset, fan.reset) == ([["red"]], [["left"]])
