"""Of a driver that never came up one thing is told: that it did not."""

from typing import Any

import pytest

from devlet.sanity import rig_device_plugin, rig_dra
from devlet.sanity.check import Check, Failed, Skipped
from devlet.sanity.checks import device_plugin, dra
from devlet.sanity.driver import Command
from devlet.sanity.report import Result
from devlet.sanity.runner import Runner
from devlet.sanity.stand_device_plugin import DevicePluginStand
from devlet.sanity.stand_dra import DraStand

pytestmark = [pytest.mark.anyio, pytest.mark.long]

LONG = 100.0  # nobody waits for it
DEAD = Command(["sh", "-c", "exit 3"])


class Silent:
    def began(self, check: Check[Any]) -> None: ...
    def ended(self, result: Result) -> None: ...


async def test_a_dead_dra_driver_has_one_finding_and_is_not_waited_for() -> None:
    settings = rig_dra.Settings(wait=LONG, start=LONG, quiet=LONG, health=LONG, stop=LONG)
    stand = DraStand(DEAD, second="sleep 60", change_command="true", settings=settings)
    report = await Runner(stand, Silent()).run(dra.ALL)
    assert [each.check.id for each in report.results if isinstance(each.outcome, Failed)] == ["DRA-REG-1"]
    assert [each.check.id for each in report.results if not isinstance(each.outcome, Skipped)] == ["DRA-REG-1"]


async def test_a_dead_device_plugin_has_one_finding_and_is_not_waited_for() -> None:
    settings = rig_device_plugin.Settings(wait=LONG, start=LONG, quiet=LONG, stop=LONG)
    stand = DevicePluginStand(DEAD, change_command="true", settings=settings)
    report = await Runner(stand, Silent()).run(device_plugin.ALL)
    assert [each.check.id for each in report.results if not isinstance(each.outcome, Skipped)] == ["DP-REG-1"]
