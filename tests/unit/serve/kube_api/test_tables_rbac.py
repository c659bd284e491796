"""The rows of role bindings."""

from datetime import UTC, datetime

import pytest

from devlet.serve.kube_api.tables_rbac import ROLE_BINDINGS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.spec("KA-5")
def test_subjects_are_listed_by_kind() -> None:
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "Group", "name": "g"},
        {"kind": "User", "name": "a"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]
    document = {"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": subjects}
    cells = ROLE_BINDINGS.cells(document, NOW)
    assert (cells[1], cells[3:]) == ("ClusterRole/view", ["u, a", "g", "n/s"])
