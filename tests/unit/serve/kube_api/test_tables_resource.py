"""The rows of claims, slices, taint rules and pool status requests."""

from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.serve.kube_api.tables_resource import (
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_POOL_STATUS_REQUESTS,
    RESOURCE_SLICES,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ALLOCATION: dict[str, Any] = {"devices": {"results": []}}
POD = {"resource": "pods", "name": "p", "uid": "1"}

pytestmark = pytest.mark.spec("KA-5")


@pytest.mark.parametrize(
    ("deleted", "status", "state"),
    [
        (False, {}, "pending"),
        (False, {"allocation": ALLOCATION}, "allocated"),
        (False, {"allocation": ALLOCATION, "reservedFor": [POD]}, "allocated,reserved"),
        (True, {}, "deleted"),
        (True, {"allocation": ALLOCATION, "reservedFor": [POD]}, "deleted,allocated,reserved"),
    ],
)
def test_the_state_of_a_claim_lists_all_states_that_apply(deleted: bool, status: dict[str, Any], state: str) -> None:
    metadata = {"deletionTimestamp": "2026-01-02T03:04:00Z"} if deleted else {}
    assert RESOURCE_CLAIMS.cells({"metadata": metadata, "status": status}, NOW)[1] == state


@pytest.mark.spec("KA-10.9")
def test_a_slice_shows_its_node_driver_and_pool() -> None:
    spec = {"nodeName": "n", "driver": "d.example.com", "pool": {"name": "p"}}
    assert RESOURCE_SLICES.cells({"spec": spec}, NOW)[1:4] == ["n", "d.example.com", "p"]


def test_a_taint_rule_shows_its_taint() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:00Z"}
    assert DEVICE_TAINT_RULES.cells({"spec": {"taint": taint}}, NOW)[1:5] == ["k", "v", "NoExecute", "5s"]


def test_an_unanswered_request_has_no_numbers() -> None:
    cells = RESOURCE_POOL_STATUS_REQUESTS.cells({"spec": {"driver": "d"}}, NOW)
    assert cells[1:] == ["d", "-", "-", "-", "-", "-", 0, "Pending", "<none>"]
