"""Each check finds the bug that it is for."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.sanity.check import Check, Failed
from devlet.sanity.checks.device_plugin import allocation

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in allocation.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))


async def test_an_unreadable_answer_is_not_a_refusal(faulty: "Runs") -> None:
    [check] = [check for check in allocation.checks if check.id == "DP-ALLOC-4"]
    [result] = (await faulty(check, "garbled")).results
    assert isinstance(result.outcome, Failed)
    assert "cannot be decoded" in result.text
