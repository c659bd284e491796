"""The status of a node."""

from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.serve.kube_api.tables_node import NODES

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

pytestmark = pytest.mark.spec("KA-5")


def status(*conditions: dict[str, Any], **spec: Any) -> Any:
    return NODES.cells({"spec": spec, "status": {"conditions": list(conditions)}}, NOW)[1]


def test_a_node_is_ready_when_it_says_so() -> None:
    assert status({"type": "Ready", "status": "True"}) == "Ready"
    assert status({"type": "Ready", "status": "Unknown"}) == "NotReady"
    assert status({"type": "MemoryPressure", "status": "True"}) == "Unknown"


@pytest.mark.spec("KA-10.52")
def test_a_cordoned_node_is_shown_as_disabled_for_scheduling() -> None:
    assert status({"type": "Ready", "status": "True"}, unschedulable=True) == "Ready,SchedulingDisabled"


def test_roles_come_from_labels() -> None:
    labels = {"node-role.kubernetes.io/b": "", "node-role.kubernetes.io/": "x", "kubernetes.io/role": "a"}
    assert NODES.cells({"metadata": {"labels": labels}}, NOW)[2] == "a,b"
    assert NODES.cells({}, NOW)[2] == "<none>"


def test_the_kernel_is_shown_with_its_architecture() -> None:
    info = {"kernelVersion": "6.1", "architecture": "arm64"}
    assert NODES.cells({"status": {"nodeInfo": info}}, NOW)[8] == "6.1 (arm64)"
