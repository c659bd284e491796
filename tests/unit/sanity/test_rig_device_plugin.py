"""What can be done to a device plugin under test."""

import sys

import pytest

from devlet.errors import PluginError
from devlet.sanity.check import CannotTell
from devlet.sanity.driver import Command
from devlet.sanity.kubelet import Registration
from devlet.sanity.rig_device_plugin import Settings
from devlet.sanity.stand_device_plugin import DevicePluginStand
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

pytestmark = [pytest.mark.anyio]

WORDS = [
    sys.executable,
    "-m",
    "tests.support.mutants.sound_device_plugin",
    "--directory={device_plugins}",
    "--cdi={cdi}",
]


async def test_a_plugin_that_ends_is_started_again_until_it_is_registered() -> None:
    async with DevicePluginStand(Command(WORDS), settings=Settings(settle=0.1)).open() as rig:
        assert (rig.trouble, rig.resources) == ("", {"example.com/led"})
        before = rig.kubelet.count
        await rig.driver.kill()
        assert [path.name for path in rig.leftovers()] != []
        assert await rig.ready_again(rig.resources, before)
        assert rig.driver.starts == 2
        with pytest.raises(PluginError, match="no longer registered"):
            rig.plugin("example.com/lamp")


async def test_attempts_without_introduction_count_only_if_there_are_no_others() -> None:
    settings = Settings(start=0.1, settle=0.1)
    async with DevicePluginStand(Command(["sleep", "60"]), settings=settings).open() as rig:
        with pytest.raises(CannotTell, match="did not come up"):
            _ = rig.registrations
        path, options = rig.places.registry / "led.sock", pb.DevicePluginOptions()
        silent = Registration("pluginregistration", (), "", "", path, options, path, "GetInfo was not answered")
        rig.kubelet.registrations.append(silent)
        assert rig.registrations == [silent]
        known = Registration("pluginregistration", ("v1beta1",), "", "v.com/led", path, options, path)
        rig.kubelet.registrations.append(known)
        assert rig.registrations == [known]


def test_a_refused_registration_may_be_repeated_after_30_seconds_as_by_nvidias_plugin() -> None:
    assert Settings().refused > 30
