"""Drivers for the suite: one that keeps the contract, and those with a bug."""

import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from devlet.sanity.check import Check
from devlet.sanity.driver import Command
from devlet.sanity.report import Report, Result
from devlet.sanity.rig_device_plugin import Settings
from devlet.sanity.runner import Runner
from devlet.sanity.stand_device_plugin import DevicePluginStand
from devlet.testing import warm_start

# What ends when it is done may take long, on any machine; what a bug makes one wait for in vain is short.
PATIENT = Settings(start=60.0, wait=60.0, refused=60.0, settle=0.2, quiet=0.3, late=0.5, slow=0.5)
BUSY = replace(PATIENT, quiet=1.0, late=2.0, slow=1.0)
_IN_VAIN: list[tuple[dict[str, float], str]] = [
    ({"start": 5.0}, "DP-REG-1"),
    ({"start": 15.0, "dial": 1.0}, "DP-REG-5 DP-WATCH-3"),
    ({"answer": 3.0}, "DP-LIST-1 DP-LIST-11 DP-LIST-13"),
    ({"answer": 0.5}, "silent"),
    ({"stop": 2.0}, "DP-STOP-1 DP-STOP-4"),
    ({"refused": 5.0}, "DP-REG-10"),
    ({"wait": 5.0}, "DP-REG-9 DP-WATCH-4 DP-WATCH-6 DP-KILL-1 DP-STOP-5"),
    ({"wait": 5.0}, "DP-AGAIN-1 DP-AGAIN-3 DP-AGAIN-4 DP-AGAIN-5 DP-CHANGE-1 DP-CHANGE-3 DP-CHANGE-4"),
    ({"wait": 15.0}, "DP-CHANGE-5"),  # it has to register again
]
IN_VAIN = {id: settings for settings, ids in _IN_VAIN for id in ids.split()}
CHANGE = "echo 6 > {root}/devices"

Runs = Callable[..., Awaitable[Report]]


class Silent:
    def began(self, check: Check[Any]) -> None: ...
    def ended(self, result: Result) -> None: ...


def python(module: str, *words: str) -> Command:
    places = ["--directory", "{device_plugins}", "--cdi", "{cdi}"]
    return Command([sys.executable, "-m", f"tests.support.mutants.{module}", *places, *words], start=warm_start.start)


@pytest.fixture
def sound() -> Runs:
    """Run checks on the plugin that keeps the contract."""

    async def run(checks: Iterable[Check[Any]], *words: str) -> Report:
        stand = DevicePluginStand(python("sound_device_plugin", *words), change_command=CHANGE, settings=PATIENT)
        return await Runner(stand, Silent(), 1).run(checks)

    return run


@pytest.fixture
def faulty() -> Runs:
    """Run a check on the plugin with the bug that it is for, or with another one."""

    async def run(check: Check[Any], bug: str = "") -> Report:
        words = ["--registry", "{registry}"] if "WATCH" in (bug or check.id) else []
        command = python("faulty_device_plugin", "--bug", bug or check.id, *words)
        settings = replace(BUSY, **IN_VAIN.get(bug or check.id, {}))
        stand = DevicePluginStand(command, change_command=CHANGE, settings=settings)
        return await Runner(stand, Silent(), 1).run([check])

    return run
