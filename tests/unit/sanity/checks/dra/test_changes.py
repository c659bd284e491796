"""Each check finds the bug that it is for."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.sanity.check import Check
from devlet.sanity.checks.dra import changes

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.checks.dra.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in changes.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))


@pytest.mark.long
@pytest.mark.parametrize("id", ["DRA-CHANGE-2", "DRA-CHANGE-3"])
async def test_without_a_change_there_is_nothing_to_tell_of_it(id: str, faulty: "Runs") -> None:
    [check] = [check for check in changes.checks if check.id == id]
    [result] = (await faulty(check, "DRA-CHANGE-1")).results
    assert (result.word, result.text) == ("skipped", "a change of its devices is not published: see DRA-CHANGE-1")
