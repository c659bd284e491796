"""That it keeps the contract is shown by tests/unit/sanity/test_sound_plugin.py."""

from pathlib import Path

import pytest

from devlet.kit.parts import running
from devlet.runtime.cdi.cache import Cache
from tests.support.mutants.sound_device_plugin import SoundDevicePlugin

pytestmark = pytest.mark.anyio


async def test_its_devices_are_as_many_as_the_file_says(root: Path) -> None:
    (root / "dp").mkdir()
    async with SoundDevicePlugin(root / "dp", root / "cdi") as plugin, running(plugin.following):
        assert [device.health for device in plugin.devices] == ["Healthy"] * 3 + ["Unhealthy"]


def test_its_cdi_devices_are_in_its_spec(root: Path) -> None:
    (root / "devices").write_text("2")
    plugin = SoundDevicePlugin(root / "dp", root / "cdi")
    plugin.write_spec()
    names = plugin.granted(["dev-0", "dev-1"]).cdi_devices
    assert len(Cache([root / "cdi"]).refresh().resolve(names).complete()) == 2


def test_it_refuses_what_it_does_not_have(root: Path) -> None:
    with pytest.raises(LookupError, match="no such device: led"):
        SoundDevicePlugin(root / "dp", root / "cdi").granted(["dev-0", "led"])
