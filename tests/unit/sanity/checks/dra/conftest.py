"""DRA drivers for the suite: one that keeps the contract, and those with a bug."""

import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from devlet.sanity.check import Check
from devlet.sanity.driver import Command
from devlet.sanity.report import Report, Result
from devlet.sanity.rig_dra import Settings
from devlet.sanity.runner import Runner
from devlet.sanity.stand_dra import DraStand
from devlet.testing import warm_start

# What ends when it is done may take long, on any machine; what a bug makes one wait for in vain is short.
PATIENT = Settings(start=60.0, wait=60.0, settle=0.2, quiet=0.5, late=0.8, repair=60.0)
BUSY = replace(PATIENT, quiet=1.0, late=2.0)
_IN_VAIN: list[tuple[dict[str, float], str]] = [
    ({"start": 5.0}, "DRA-REG-1"),
    ({"start": 15.0}, "DRA-REG-5"),
    ({"start": 15.0, "wait": 15.0}, "DRA-REG-3"),
    ({"repair": 5.0}, "DRA-SLICE-10"),
    ({"wait": 5.0, "answer": 3.0}, "DRA-CALL-1"),
    ({"answer": 3.0}, "DRA-HEALTH-1 DRA-HEALTH-8 DRA-CALL-8 silent"),
    ({"stop": 2.5}, "DRA-STOP-1 DRA-STOP-3"),
    ({"wait": 5.0}, "DRA-REG-11 DRA-AGAIN-1 DRA-AGAIN-4 DRA-KILL-1 DRA-STOP-4 DRA-TWO-1"),
    ({"wait": 5.0}, "DRA-SLICE-1 DRA-SLICE-5 DRA-SLICE-6 DRA-CHANGE-1"),
    ({"wait": 15.0}, "DRA-AGAIN-5 DRA-CHANGE-2 DRA-CHANGE-4"),  # something has to happen first
]
IN_VAIN = {id: settings for settings, ids in _IN_VAIN for id in ids.split()}
CHANGE = "d={root}/devices; n=$(cat $d 2>/dev/null || echo 10); echo $((n + 2)) > $d.new; mv $d.new $d"
PARAMETERS = [{"color": "green"}]

Runs = Callable[..., Awaitable[Report]]


class Silent:
    def began(self, check: Check[Any]) -> None: ...
    def ended(self, result: Result) -> None: ...


def python(module: str, *words: str) -> Command:
    places = ["--root={root}", "--cdi={cdi}", "--kubeconfig={kubeconfig}", "--node={node}", "--instance={instance}"]
    return Command([sys.executable, "-m", f"tests.support.mutants.{module}", *places, *words], start=warm_start.start)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is waited for in vain takes its time."""
    for item in items:
        if any(f"[{id}]" in item.name for id in IN_VAIN):
            item.add_marker(pytest.mark.long)


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
    """Run a check on the driver with the bug that it is for, or with another one."""

    async def run(check: Check[Any], bug: str = "") -> Report:
        command = python("faulty_dra_driver", "--bug", bug or check.id)
        settings = replace(BUSY, **IN_VAIN.get(bug or check.id, {}))
        stand = DraStand(command, change_command=CHANGE, configs=PARAMETERS, settings=settings)
        return await Runner(stand, Silent(), 1).run([check])

    return run
