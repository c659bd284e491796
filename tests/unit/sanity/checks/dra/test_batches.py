"""Each check finds the bug that it is for."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.sanity.check import Check, Failed
from devlet.sanity.checks.dra import batches

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.checks.dra.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in batches.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))


@pytest.mark.parametrize("bug", ["silent", "garbled"])
async def test_missing_and_unreadable_answers_are_not_refusals(bug: str, faulty: "Runs") -> None:
    [check] = [check for check in batches.checks if check.id == "DRA-BATCH-5"]
    [result] = (await faulty(check, bug)).results
    assert isinstance(result.outcome, Failed), result.text
    assert ("was not answered" if bug == "silent" else "cannot be decoded") in result.text
