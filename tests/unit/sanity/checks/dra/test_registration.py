"""Each check finds the bug that it is for."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.sanity.check import Check, Failed
from devlet.sanity.checks.dra import registration

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.checks.dra.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in registration.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))


async def test_a_service_that_only_prepares_is_not_served(faulty: "Runs") -> None:
    [check] = [check for check in registration.checks if check.id == "DRA-REG-8"]
    [result] = (await faulty(check, "DRA-UNPREP-9")).results
    assert isinstance(result.outcome, Failed), result.text
    assert result.text.startswith("the driver offers v1beta1.DRAPlugin, but does not implement it: ")
