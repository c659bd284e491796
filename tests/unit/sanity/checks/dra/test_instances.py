"""Each check finds the bug that it is for."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.sanity.check import Check
from devlet.sanity.checks.dra import instances

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.checks.dra.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in instances.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))
