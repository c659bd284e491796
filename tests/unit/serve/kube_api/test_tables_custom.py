"""Columns that a definition declares."""

from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.serve.kube_api.tables_custom import custom_printer

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ROBOT = {
    "metadata": {"name": "r", "creationTimestamp": "2026-01-02T03:04:00Z"},
    "spec": {
        "arms": 3,
        "weight": 2.5,
        "on": True,
        "text": "hello",
        "nothing": None,
        "map": {"b": 1, "a": "x"},
        "list": [1, 2],
        "endless": float("inf"),
    },
}


def cell(type_: str, path: str) -> Any:
    return custom_printer([{"name": "X", "type": type_, "jsonPath": path}]).cells(ROBOT, NOW)[1]


@pytest.mark.parametrize(
    ("type_", "path", "shown"),
    [
        ("integer", ".spec.arms", 3),
        ("integer", ".spec.weight", 2),
        ("integer", ".spec.text", None),
        ("integer", ".spec.on", None),
        ("integer", ".spec.endless", None),
        ("number", ".spec.weight", 2.5),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.arms", None),
        ("date", ".metadata.creationTimestamp", "5s"),
        ("date", ".spec.text", "<invalid>"),
        ("date", ".spec.nothing", None),
        ("string", ".spec.text", "hello"),
        ("string", ".spec.arms", "3"),
        ("string", ".spec.on", "true"),
        ("string", ".spec.map", '{"a":"x","b":1}'),
        ("string", ".spec.list[*]", "1"),
        ("string", ".spec.nothing", "<no value>"),
        ("string", ".spec.absent", None),
        ("string", "no path at all", None),
    ],
)
def test_a_cell_has_the_type_of_its_column(type_: str, path: str, shown: object) -> None:
    assert cell(type_, path) == shown


def test_columns_are_those_of_the_definition() -> None:
    declared = {"name": "Arms", "type": "integer", "jsonPath": ".spec.arms", "priority": 1, "description": "How many."}
    name, arms = custom_printer([declared]).columns
    assert name.format == "name"
    assert arms.document() == {
        "name": "Arms",
        "type": "integer",
        "format": "",
        "description": "How many.",
        "priority": 1,
    }


def test_without_declared_columns_the_age_is_shown() -> None:
    for printer in (custom_printer(None), custom_printer([])):
        assert [column.name for column in printer.columns] == ["Name", "Age"]
        assert printer.cells(ROBOT, NOW) == ["r", "5s"]
