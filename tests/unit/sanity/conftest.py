"""Drivers for the suite: one that keeps the contract, and those with a bug."""

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from devlet.sanity.check import Check
from devlet.sanity.driver import Command
from devlet.sanity.report import Report, Result
from devlet.sanity.rig_device_plugin import DevicePluginStand, Settings
from devlet.sanity.runner import Runner

# What a sound plugin may take is long, and ends when it is done; what is waited for in vain is short.
PATIENT = Settings(wait=15.0, settle=0.2, quiet=0.3, late=0.5, slow=0.5, stop=15.0)
SHORT = Settings(wait=5.0, settle=0.2, quiet=0.3, late=0.8, slow=0.8, stop=2.0, answer=2.0, dial=1.0)
CHANGE = "echo 6 > {root}/devices"

Runs = Callable[..., Awaitable[Report]]


class Silent:
    def began(self, check: Check[Any]) -> None: ...
    def ended(self, result: Result) -> None: ...


def python(module: str, *words: str) -> Command:
    places = ["--directory", "{device_plugins}", "--cdi", "{cdi}"]
    return Command([sys.executable, "-m", f"devlet.testing.{module}", *places, *words])


@pytest.fixture
def sound() -> Runs:
    """Run checks on the plugin that keeps the contract."""

    async def run(checks: Iterable[Check[Any]], *words: str) -> Report:
        stand = DevicePluginStand(python("sound_device_plugin", *words), change_command=CHANGE, settings=PATIENT)
        return await Runner(stand, Silent(), 1).run(checks)

    return run


@pytest.fixture
def faulty() -> Runs:
    """Run a check on the plugin with the bug that it is for."""

    async def run(check: Check[Any]) -> Report:
        words = ["--registry", "{registry}"] if "WATCH" in check.id else []
        command = python("faulty_device_plugin", "--bug", check.id, *words)
        return await Runner(DevicePluginStand(command, change_command=CHANGE, settings=SHORT), Silent(), 1).run([check])

    return run
