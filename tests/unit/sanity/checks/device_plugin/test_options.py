"""Each check finds the bug that it is for."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.sanity.check import Check, Skipped
from devlet.sanity.checks.device_plugin import options

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in options.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))


async def test_whether_it_has_preferences_is_not_known_if_it_does_not_answer(faulty: "Runs") -> None:
    [check] = [check for check in options.checks if check.id == "DP-PREF-6"]
    [result] = (await faulty(check, "silent")).results
    assert isinstance(result.outcome, Skipped), result.text
    assert "was not answered" in result.text
