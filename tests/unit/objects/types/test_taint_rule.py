"""Views of taint rules and pool status requests."""

from typing import Any

import pytest

from devlet.objects.documents import view
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.taint_rule import DeviceTaintRule, ResourcePoolStatusRequest

DEVICE = DeviceIdentity(DriverName("d"), PoolName("p"), DeviceName("gpu-0"))


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"driver": "d"}, True),
        ({"driver": "d", "pool": "p", "device": "gpu-0"}, True),
        ({"driver": "e"}, False),
        ({"pool": "p", "device": "gpu-1"}, False),
        ({"pool": "q"}, False),
    ],
)
def test_a_rule_without_a_selector_matches_nothing_and_an_empty_one_everything(selector: Any, matches: bool) -> None:
    rule = view(DeviceTaintRule, {"spec": {"deviceSelector": selector, "taint": {"key": "k", "effect": "None"}}})
    assert rule.matches(DEVICE) is matches


def test_counts_of_an_incomplete_pool_are_unset() -> None:
    document = {"spec": {"driver": "d"}, "status": {"pools": [{"driver": "d", "poolName": "p", "totalDevices": 0}]}}
    request = view(ResourcePoolStatusRequest, document)
    assert request.spec.limit is None
    assert request.status is not None
    assert request.status.pools[0].total_devices == 0
    assert request.status.pools[0].allocated_devices is None
    assert view(ResourcePoolStatusRequest, {"spec": {}}).status is None
