"""Each check finds the bug that it is for; shares are as small as a device allows."""

from typing import TYPE_CHECKING, Any

import pytest

from devlet.objects.documents import Document
from devlet.sanity.check import CannotTell, Check, Failed, Warned
from devlet.sanity.checks.dra import shares
from devlet.sanity.claim_maker import Offer

if TYPE_CHECKING:
    from tests.unit.sanity.checks.dra.conftest import Runs

pytestmark = pytest.mark.anyio

CHECKS = [pytest.param(check, id=check.id) for check in shares.checks]


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs") -> None:
    report = await faulty(check)
    [result] = report.results
    assert isinstance(result.outcome, Failed | Warned), f"{result.text}; {report.trouble}"
    assert result.text and result.how


def device(policy: Document | None) -> Offer:
    capacity = {"value": "10Gi"} | ({"requestPolicy": policy} if policy else {})
    return Offer("pool", {"name": "d", "allowMultipleAllocations": True, "capacity": {"memory": capacity}})


@pytest.mark.parametrize(
    ("policy", "part"),
    [
        (None, "5Gi"),
        ({"default": "2Gi"}, "2Gi"),
        ({"default": "4Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}, "1Gi"),
        ({"default": "4Gi", "validRange": {"min": "0"}}, "4Gi"),
        ({"default": "8Gi", "validValues": ["3Gi", "8Gi"]}, "3Gi"),
    ],
)
def test_a_share_is_the_least_that_the_policy_allows_or_half(policy: Document | None, part: str) -> None:
    assert shares.small(device(policy)).device["capacity"] == {"memory": {"value": part}}


def test_a_device_without_capacities_can_be_shared() -> None:
    offer = Offer("pool", {"name": "d", "allowMultipleAllocations": True})
    assert shares.small(offer).is_shared


def test_what_does_not_suffice_for_two_cannot_be_shared() -> None:
    with pytest.raises(CannotTell, match="d has memory 10Gi, and a share takes at least 6Gi"):
        shares.small(device({"default": "6Gi"}))
