"""Each check finds the bug that it is for."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.sanity.check import Check, Failed, Outcome, Passed
from devlet.sanity.checks.dra import preparing

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.checks.dra.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in preparing.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))


@pytest.mark.parametrize("bug", ["silent", "garbled"])
@pytest.mark.parametrize("id", ["DRA-PREP-6", "DRA-PREP-7", "DRA-PREP-8", "DRA-PREP-11", "DRA-PREP-13"])
async def test_missing_and_unreadable_answers_are_not_refusals(id: str, bug: str, faulty: "Runs") -> None:
    [check] = [check for check in preparing.checks if check.id == id]
    [result] = (await faulty(check, bug)).results
    assert isinstance(result.outcome, Failed), result.text
    assert ("was not answered" if bug == "silent" else "cannot be decoded") in result.text


@pytest.mark.parametrize(
    ("id", "bug", "outcome"), [("DRA-PREP-15", "DRA-REG-6", Passed), ("DRA-PREP-16", "DRA-CDI-2", Failed)]
)
async def test_problems_elsewhere_are_ignored(id: str, bug: str, outcome: type[Outcome], faulty: "Runs") -> None:
    """Names of services that nobody knows, and CDI files that come late."""
    [check] = [check for check in preparing.checks if check.id == id]
    [result] = (await faulty(check, bug)).results
    assert isinstance(result.outcome, outcome), result.text
