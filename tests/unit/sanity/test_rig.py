"""What can be done to any driver under test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devlet.sanity.check import CannotTell
from devlet.sanity.driver import AttachedDriver, Command
from devlet.sanity.rig import until
from devlet.sanity.rig_device_plugin import DevicePluginRig, Settings
from devlet.sanity.stand_device_plugin import DevicePluginStand

pytestmark = pytest.mark.anyio

QUICK = Settings(start=0.1, settle=0.1)


@pytest.fixture
async def rig() -> AsyncIterator[DevicePluginRig]:
    async with DevicePluginStand(Command(["sleep", "60"]), settings=QUICK).open() as opened:
        yield opened


async def test_devices_change_only_by_a_command(rig: DevicePluginRig) -> None:
    with pytest.raises(CannotTell, match="give one with --change"):
        await rig.change_devices()
    rig.change_command = "touch {root}/changed; exit 3"
    with pytest.raises(CannotTell, match="exited with 3"):
        await rig.change_devices()
    assert (rig.places.root / "changed").exists()


async def test_what_was_never_there_is_not_ended(rig: DevicePluginRig) -> None:
    with pytest.raises(CannotTell, match="did not come up: see DP-REG-1"):
        await rig.terminate(1.0)
    assert rig.driver.pid


async def test_a_driver_stopped_by_a_check_is_not_trouble_and_not_restarted(rig: DevicePluginRig) -> None:
    rig.unready = ""
    await rig.driver.kill()
    assert rig.trouble == "the driver was ended by SIGKILL; its log is empty"
    rig.stopped = True
    await rig.revive()
    assert (rig.trouble, rig.driver.pid) == ("", None)
    await rig.start_again()
    assert rig.driver.pid


async def test_one_that_is_not_registered_any_more_is_trouble_unless_a_check_has_stopped_it(
    rig: DevicePluginRig,
) -> None:
    rig.unready = ""
    assert rig.trouble == "the driver is no longer registered; its log is empty"
    own, rig.driver = rig.driver, AttachedDriver()
    assert rig.trouble == "the driver is no longer registered; its log is not known"
    rig.driver, rig.stopped = own, True
    assert rig.trouble == ""


async def test_of_one_that_is_attached_neither_log_nor_process_is_known(rig: DevicePluginRig) -> None:
    assert (rig.log_bytes(), rig.usage().files > 0) == (0, True)
    rig.driver = AttachedDriver()
    with pytest.raises(CannotTell, match="its log is not known"):
        rig.log_bytes()
    with pytest.raises(CannotTell, match="process is not known"):
        rig.usage()


async def test_what_holds_is_not_waited_for(root: Path) -> None:
    assert await until(root.is_dir, 0.0)
    assert not await until((root / "no").is_dir, 0.0)
