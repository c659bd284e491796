"""DRA drivers for the suite: one that keeps the contract, and those with a bug."""

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from devlet.sanity.check import Check
from devlet.sanity.driver import Command
from devlet.sanity.report import Report, Result
from devlet.sanity.rig_dra import Settings
from devlet.sanity.runner import Runner
from devlet.sanity.stand_dra import DraStand

# What a sound driver may take is long, and ends when it is done; what is waited for in vain is short.
PATIENT = Settings(wait=20.0, settle=0.2, quiet=0.5, late=0.8, stop=15.0, repair=15.0)
SHORT = Settings(wait=6.0, settle=0.2, quiet=0.5, late=0.8, stop=2.5, answer=3.0, dial=2.0, repair=3.0)
CHANGE = "echo 12 > {root}/devices"
PARAMETERS = [{"color": "green"}]

Runs = Callable[..., Awaitable[Report]]


class Silent:
    def began(self, check: Check[Any]) -> None: ...
    def ended(self, result: Result) -> None: ...


def python(module: str, *words: str) -> Command:
    places = ["--root={root}", "--cdi={cdi}", "--kubeconfig={kubeconfig}", "--node={node}", "--instance={instance}"]
    return Command([sys.executable, "-m", f"devlet.testing.{module}", *places, *words])


@pytest.fixture
def sound() -> Runs:
    """Run checks on the driver that keeps the contract."""

    async def run(checks: Iterable[Check[Any]], *words: str) -> Report:
        command = python("sound_dra_driver", *words)
        stand = DraStand(command, change_command=CHANGE, configs=PARAMETERS, settings=PATIENT)
        return await Runner(stand, Silent(), 1).run(checks)

    return run


@pytest.fixture
def faulty() -> Runs:
    """Run a check on the driver with the bug that it is for."""

    async def run(check: Check[Any]) -> Report:
        command = python("faulty_dra_driver", "--bug", check.id)
        stand = DraStand(command, change_command=CHANGE, configs=PARAMETERS, settings=SHORT)
        return await Runner(stand, Silent(), 1).run([check])

    return run
