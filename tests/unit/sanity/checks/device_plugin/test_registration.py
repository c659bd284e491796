"""Each check finds the bug that it is for."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.sanity.check import Check, Outcome, Passed
from devlet.sanity.checks.device_plugin import registration
from devlet.sanity.rig_device_plugin import DevicePluginRig, Settings
from devlet.sanity.stand_device_plugin import DevicePluginStand
from devlet.testing.fake_device_plugin import FakeDevicePlugin

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in registration.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))


async def test_a_resource_that_comes_late_is_not_one_that_comes_again(root: Path) -> None:
    [check] = [check for check in registration.checks if check.id == "DP-REG-7"]
    directory = root / "device-plugins"
    directory.mkdir()
    stand = DevicePluginStand(directory=directory, settings=Settings(settle=0.1, quiet=0.8))
    found: list[Outcome] = []
    ended = anyio.Event()

    async def look(rig: DevicePluginRig) -> None:
        found.append(await check.run(rig))
        ended.set()

    async with (
        FakeDevicePlugin(directory, "v.com/led", follow=True),
        stand.open() as rig,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(look, rig)
        async with FakeDevicePlugin(directory, "v.com/lamp", follow=True):
            await ended.wait()
    assert found == [Passed()]
