"""Shares of a device have together what the device has, by the policy of each capacity."""

import pytest

from devlet.objects.documents import Document
from devlet.sanity.check import CannotTell
from devlet.sanity.share_amounts import share_amounts

RANGE = {"default": "8", "validRange": {"min": "2", "step": "2"}}


def light(value: str, **policy: object) -> Document:
    capacity = {"value": value} | ({"requestPolicy": policy} if policy else {})
    return {"name": "shared", "capacity": {"light": capacity}}


@pytest.mark.parametrize(
    ("device", "shares", "amount"),
    [
        (light("10"), 1, "10"),
        (light("10"), 2, "5"),
        (light("10"), 3, "3"),
        (light("1"), 2, "500m"),
        (light("80Gi"), 2, "40Gi"),
        (light("10", default="4"), 1, "4"),
        (light("10", default="4"), 2, "4"),
        (light("10", default="6"), 2, "5"),
        (light("10", **RANGE), 1, "8"),
        (light("10", **RANGE), 2, "2"),
        (light("10", default="8", validValues=["3", "8"]), 3, "3"),
    ],
)
def test_they_fit(device: Document, shares: int, amount: str) -> None:
    assert share_amounts(device, shares) == {"light": amount}


def test_a_device_too_small_for_any_share_skips_the_check() -> None:
    with pytest.raises(CannotTell, match="2 shares of shared would need at least 12 of its 10 light"):
        share_amounts(light("10", default="6", validValues=["6"]), 2)


def test_a_device_without_capacity_has_no_amounts() -> None:
    assert share_amounts({"name": "shared"}, 2) == {}
