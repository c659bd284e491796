"""Drivers that cannot be driven: what is said of them, and what is looked at nonetheless."""

import os
import sys
from pathlib import Path

import pytest

from devlet.errors import InUse, InvalidInput
from devlet.sanity.check import CannotTell
from devlet.sanity.driver import Command
from devlet.sanity.rig_device_plugin import Settings
from devlet.sanity.stand_device_plugin import DevicePluginStand
from devlet.testing.fake_device_plugin import FakeDevicePlugin

pytestmark = [pytest.mark.anyio]

QUICK = Settings(start=0.5, wait=0.5, settle=0.1, quiet=0.1, dial=0.5, answer=2.0)


async def trouble(*words: str, settings: Settings = QUICK) -> str:
    async with DevicePluginStand(Command(words), settings=settings).open() as rig:
        with pytest.raises(CannotTell, match="did not come up"):
            _ = rig.plugins
        return rig.trouble


async def test_a_plugin_that_never_registers_is_reported() -> None:
    assert await trouble("sleep", "60") == "the driver was not registered within 0.5 s; its log is empty"


async def test_a_driver_that_exits_at_once_is_reported_with_its_log() -> None:
    said = await trouble("sh", "-c", "echo no device; exit 4", settings=Settings())
    assert said == "the driver exited with 4 before it was registered; the end of its log:\nno device"


async def test_one_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await trouble("/no/such/driver")
    assert isinstance(caught.value.exceptions[0], InvalidInput)


@pytest.mark.long
async def test_one_that_serves_and_does_not_register_can_be_called() -> None:
    words = [sys.executable, "-m", "tests.support.mutants.faulty_device_plugin", "--bug", "DP-REG-1"]
    command = Command([*words, "--directory", "{device_plugins}", "--cdi", "{cdi}"])
    settings = Settings(start=8.0, settle=0.1, dial=0.5)
    async with DevicePluginStand(command, settings=settings).open() as rig:
        assert "was not registered" in rig.trouble
        [plugin] = rig.plugins
        assert await plugin.healthy() == ["dev-0", "dev-1", "dev-2"]


_HTTP = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
while True:
    listener.accept()[0].sendall(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
"""


@pytest.mark.long
async def test_a_driver_that_does_not_speak_grpc_is_reported() -> None:
    settings = Settings(start=5.0, settle=0.1, dial=1.0)
    said = await trouble(sys.executable, "-c", _HTTP, "{device_plugins}/x.sock", settings=settings)
    assert "\na process listens on x.sock, but calling it failed: " in said
    assert "did not speak gRPC within 1 s" in said


async def test_attaching_in_a_missing_directory_is_an_error(root: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with DevicePluginStand(directory=root / "no").open():
            pass
    assert caught.value.subgroup(InvalidInput)
    assert not os.listdir(root)


async def test_a_driver_that_did_not_come_up_is_not_waited_for_again() -> None:
    stand = DevicePluginStand(Command(["sleep", "60"]), settings=QUICK)
    async with stand.open() as first, stand.open() as second:
        assert first.trouble == second.trouble
        assert (first.driver.starts, second.driver.starts) == (1, 0)


async def test_one_that_runs_already_is_attached_to(root: Path) -> None:
    directory = root / "device-plugins"
    directory.mkdir()
    settings = Settings(settle=0.1)
    async with FakeDevicePlugin(directory, "vendor.com/led", follow=True):
        async with DevicePluginStand(directory=directory, settings=settings).open() as rig:
            assert rig.resources == {"vendor.com/led"}
            with pytest.raises(ExceptionGroup) as caught:
                async with DevicePluginStand(directory=directory, settings=settings).open():
                    pass
            assert isinstance(caught.value.exceptions[0], InUse)
    assert not (directory / "kubelet.sock").exists()


async def test_directories_and_logs_are_kept_if_wanted(root: Path) -> None:
    keep = root / "kept"
    async with DevicePluginStand(Command(["sh", "-c", "echo {root}"]), settings=QUICK, keep=keep).open():
        pass
    assert (keep / "001" / "driver.log").read_text().strip() == str(keep / "001")


async def test_a_directory_that_is_too_long_for_sockets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="too long for sockets"):
        async with DevicePluginStand(Command(["true"]), keep=tmp_path / ("x" * 60)).open():
            pass
