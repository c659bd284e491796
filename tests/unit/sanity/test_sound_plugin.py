"""A device plugin that keeps the contract passes all checks; for each check there is a bug."""

from typing import TYPE_CHECKING

import pytest

from devlet.sanity.checks.device_plugin import ALL
from tests.support.mutants.faulty_device_plugin import BUGS

if TYPE_CHECKING:
    from tests.unit.sanity.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]


def test_there_is_a_bug_for_every_check_and_no_other() -> None:
    ids = [check.id for check in ALL]
    assert len(ids) == len(set(ids))
    assert set(BUGS) == set(ids)


async def test_a_sound_plugin_passes_what_does_not_disturb_it(sound: "Runs") -> None:
    report = await sound([check for check in ALL if not check.fresh])
    assert [(r.check.id, r.text) for r in report.results if r.word not in ("passed", "skipped")] == []
    assert {r.check.id for r in report.results if r.word == "skipped"} == {f"DP-WATCH-{n}" for n in (1, 2, 3, 5)}


@pytest.mark.soak  # in CI an example passes everything: tests/contract/test_examples_pass_sanity.py
async def test_a_sound_plugin_passes_everything(sound: "Runs") -> None:
    report = await sound(ALL)
    assert [(r.check.id, r.text) for r in report.results if r.word not in ("passed", "skipped")] == []
    assert {r.check.id for r in report.results if r.word == "skipped"} == {f"DP-WATCH-{n}" for n in range(1, 7)}


@pytest.mark.long
async def test_a_sound_plugin_that_waits_to_be_found_passes_everything(sound: "Runs") -> None:
    report = await sound(ALL, "--registry", "{registry}")
    assert [(r.check.id, r.text) for r in report.results if r.word not in ("passed", "skipped")] == []
    registers = {"DP-REG-3", "DP-REG-6", "DP-REG-9", "DP-REG-10", *(f"DP-AGAIN-{n}" for n in (1, 2, 3, 4))}
    assert {r.check.id for r in report.results if r.word == "skipped"} == registers
