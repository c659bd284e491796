"""The rows of volumes; all of storage is compared with kube-apiserver in test_tables."""

from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.serve.kube_api.tables_storage import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

pytestmark = pytest.mark.spec("KA-5")


def test_a_claim_shows_its_allocation_and_not_its_requests() -> None:
    status = {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}
    document: dict[str, Any] = {"spec": {"accessModes": ["ReadWriteMany"]}, "status": status}
    assert PERSISTENT_VOLUME_CLAIMS.cells(document, NOW)[1:5] == ["Bound", "", "", ""]
    document["spec"]["volumeName"] = "v"
    assert PERSISTENT_VOLUME_CLAIMS.cells(document, NOW)[1:5] == ["Bound", "v", "2Gi", "RWO,ROX"]


def test_the_default_class_is_marked() -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    document = {"metadata": {"name": "fast", "annotations": annotations}, "provisioner": "p"}
    assert STORAGE_CLASSES.cells(document, NOW)[:5] == ["fast (default)", "p", "Delete", "Immediate", False]
