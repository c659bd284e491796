"""Each check finds the bug that it is for."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.sanity.check import Check, Failed, Warned
from devlet.sanity.checks.dra import slices

if TYPE_CHECKING:
    from tests.unit.sanity.checks.dra.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(300)]

CHECKS = [pytest.param(check, id=check.id) for check in slices.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs") -> None:
    report = await faulty(check)
    [result] = report.results
    assert isinstance(result.outcome, Failed | Warned), f"{result.text}; {report.trouble}"
    assert result.text and result.how
