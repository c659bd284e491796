"""A DRA driver that keeps the contract passes all checks; for each check there is a bug."""

from typing import TYPE_CHECKING

import pytest

from devlet.sanity.checks.dra import ALL
from tests.support.mutants.faulty_dra_driver import BUGS

if TYPE_CHECKING:
    from tests.unit.sanity.checks.dra.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]


def test_there_is_a_bug_for_every_check_and_no_other() -> None:
    ids = [check.id for check in ALL]
    assert len(ids) == len(set(ids))
    assert set(BUGS) == set(ids)


async def test_a_sound_driver_passes_what_does_not_disturb_it(sound: "Runs") -> None:
    report = await sound([check for check in ALL if not check.fresh])
    assert [(r.check.id, r.text) for r in report.results if r.word != "passed"] == []


@pytest.mark.soak  # in CI an example passes everything: tests/contract/test_examples_pass_sanity.py
async def test_a_sound_driver_passes_everything(sound: "Runs") -> None:
    report = await sound(ALL)
    assert [(r.check.id, r.text) for r in report.results if r.word != "passed"] == []
