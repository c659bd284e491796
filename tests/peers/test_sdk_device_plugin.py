"""Plugins of the SDK with the kubelet's own device manager."""

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.kit.parts import running
from devlet.runtime import kubelet_paths
from devlet.sdk.board import Board
from devlet.sdk.device_plugin import DevicePlugin, PluginOptions
from devlet.sdk.values import DeviceNode, Grant, Mount, PluginDevice
from devlet.state.device_checkpoint import Encoder, decode
from devlet.testing.waiting import until
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

FILE = "kubelet_internal_checkpoint"


class Leds(DevicePlugin):
    resource = "example.com/led"

    def __init__(self, *devices: PluginDevice) -> None:
        self._board: Board[Sequence[PluginDevice]] = Board()
        self.show(*devices)
        self.allocated: list[str] = []

    def show(self, *devices: PluginDevice) -> None:
        self._board.show(devices)

    def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        return self._board.values()

    async def allocate(self, ids: Sequence[str]) -> Grant:
        self.allocated += ids
        return Grant(
            env={"LED": ",".join(ids)},
            devices=[DeviceNode("/dev/null", "/dev/led", "r")],
            mounts=[Mount("/run/led")],
            annotations={"led": "on"},
            cdi_devices=["example.com/led=red"],
        )


class Fans(Leds):
    """Has a preference, for the last ones."""

    resource = "example.com/fan"

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        return sorted(available)[-size:]


class Kubelet:
    """Its device manager, once for each `admit`: each removes all sockets when it starts."""

    def __init__(self, program: Path, root: Path) -> None:
        self._program = program
        self.directory = root / "device-plugins"
        self.directory.mkdir()
        (self.directory / FILE).write_bytes(Encoder().encode([], {}))

    async def admit(self, resource: str, pods: int) -> dict[str, Any]:
        """That many pods, with one device each; as soon as there are so many healthy ones."""
        namespace = [sys.executable, "-m", kubelet_paths.__name__, str(self.directory.parent)]
        flags = [f"--directory={self.directory}", f"--resource={resource}", f"--pods={pods}"]
        # The program waits for another checkpoint than this, by its inode number, which must not be given out again.
        with (self.directory / FILE).open("rb"):
            answer = await anyio.run_process([*namespace, str(self._program), "bench", *flags], check=False)
        assert answer.returncode == 0, answer.stderr.decode()
        result: dict[str, Any] = json.loads(answer.stdout)
        return result

    def held(self) -> list[str]:
        entries = decode((self.directory / FILE).read_bytes()).entries or ()
        return [id for entry in entries for ids in (entry.devices or {}).values() for id in ids or ()]

    def granted(self) -> pb.ContainerAllocateResponse:
        entries = decode((self.directory / FILE).read_bytes()).entries or ()
        return pb.ContainerAllocateResponse.FromString(next(iter(entries)).response or b"")


@pytest.fixture
def kubelet(peers: "Peers", root: Path) -> Kubelet:
    peers.need("kubelet-devices")
    return Kubelet(peers.binaries / "kubelet-devices", root)


@asynccontextmanager
async def served(kubelet: Kubelet, plugin: DevicePlugin) -> AsyncIterator[None]:
    async with running(partial(plugin.run, PluginOptions(kubelet.directory))):
        yield


def leds(count: int, health: str = "Healthy", nodes: tuple[int, ...] = ()) -> list[PluginDevice]:
    return [PluginDevice(f"led-{number}", health, nodes) for number in range(count)]


async def test_a_plugin_serves_one_kubelet_after_the_other(kubelet: Kubelet) -> None:
    plugin = Leds(*leds(5, nodes=(0,)))
    async with served(kubelet, plugin):
        first = await kubelet.admit(plugin.resource, 2)
        second = await kubelet.admit(plugin.resource, 3)
    assert (first["existing"], first["admitted"], second["existing"], second["admitted"]) == (0, 2, 2, 3)
    assert sorted(kubelet.held()) == sorted(plugin.allocated) == [f"led-{number}" for number in range(5)]


async def test_what_it_grants_is_what_the_kubelet_keeps(kubelet: Kubelet) -> None:
    plugin = Leds(*leds(1))
    async with served(kubelet, plugin):
        await kubelet.admit(plugin.resource, 1)
    assert kubelet.granted() == pb.ContainerAllocateResponse(
        envs={"LED": "led-0"},
        devices=[pb.DeviceSpec(host_path="/dev/null", container_path="/dev/led", permissions="r")],
        mounts=[pb.Mount(host_path="/run/led", container_path="/run/led", read_only=True)],
        annotations={"led": "on"},
        cdi_devices=[pb.CDIDevice(name="example.com/led=red")],
    )


async def test_devices_that_recover_and_devices_that_come_are_used(kubelet: Kubelet) -> None:
    plugin = Leds(*leds(2, "Unhealthy"))
    async with served(kubelet, plugin), anyio.create_task_group() as tasks:

        async def registered() -> bool:
            return (kubelet.directory / "kubelet.sock").exists()

        async def change() -> None:
            await until(registered)
            plugin.show(*leds(2, "Unhealthy"), PluginDevice("new"))
            plugin.show(*leds(2), PluginDevice("new"))

        tasks.start_soon(change)
        assert (await kubelet.admit(plugin.resource, 3))["admitted"] == 3
    assert sorted(kubelet.held()) == ["led-0", "led-1", "new"]


async def test_a_preference_is_followed(kubelet: Kubelet) -> None:
    plugin = Fans(*leds(9))
    async with served(kubelet, plugin):
        assert (await kubelet.admit(plugin.resource, 3))["admitted"] == 3
    assert plugin.allocated == ["led-8", "led-7", "led-6"]


async def test_two_plugins_of_one_process_both_come_back(kubelet: Kubelet) -> None:
    one, other = Leds(*leds(4)), Fans(*leds(4))  # the program wants as many devices as there are pods, of any resource
    async with served(kubelet, one), served(kubelet, other):
        for plugin in (one, other, one, other):
            assert (await kubelet.admit(plugin.resource, 1))["failed"] == 0
    assert (len(set(one.allocated)), other.allocated) == (2, ["led-3", "led-2"])
