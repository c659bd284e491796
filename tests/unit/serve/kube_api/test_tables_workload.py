"""The rows of workloads; all of them are compared with kube-apiserver in test_tables."""

from datetime import UTC, datetime

import pytest

from devlet.serve.kube_api.tables_workload import POD_DISRUPTION_BUDGETS, REPLICA_SETS, STATEFUL_SETS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

pytestmark = pytest.mark.spec("KA-5")


def test_replicas_are_counted() -> None:
    document = {"spec": {"replicas": 3}, "status": {"replicas": 2, "readyReplicas": 1}}
    assert REPLICA_SETS.cells(document, NOW)[1:4] == [3, 2, 1]
    assert STATEFUL_SETS.cells(document, NOW)[1] == "1/3"


def test_a_limit_that_is_not_set_is_not_zero() -> None:
    cells = POD_DISRUPTION_BUDGETS.cells({"spec": {"minAvailable": 0}}, NOW)
    assert cells[1:3] == ["0", "N/A"]
