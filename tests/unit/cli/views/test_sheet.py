from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from devlet.cli.views.sheet import amounts, fields, heading, section, table, tree

NOW = datetime(2026, 1, 2, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def test_fields_are_aligned_and_lists_take_a_line_each() -> None:
    assert list(fields([("A", "x"), ("Longer", ["1", "2"]), ("Map", {"b": 1, "a": True}), ("No", None)])) == [
        "A:            x",
        "Longer:       1",
        "              2",
        "Map:          a=True",
        "              b=1",
        "No:           <none>",
    ]


def test_a_tree_is_indented() -> None:
    value = {"a": 1, "b": {"c": [{"d": "x", "e": [1, 2]}, "y"]}, "empty": {}, "managedFields": [1]}
    assert list(tree(value)) == [
        "a: 1",
        "b:",
        "  c:",
        "    - d: x",
        "      e:",
        "        - 1",
        "        - 2",
        "    - y",
        "empty: <none>",
    ]


@given(JSON)
def test_any_value_becomes_printable_lines(value: object) -> None:
    assert all("\n" not in line and "\x1b" not in line for line in tree(value))


def test_what_is_empty_is_said() -> None:
    assert list(section("Things", table(["A"], []))) == ["Things:       <none>"]
    assert amounts({}) == "<none>"


def test_the_heading_says_what_is_known() -> None:
    metadata = {
        "name": "n",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T23:59:00Z",
        "finalizers": ["a/b"],
        "ownerReferences": [{"kind": "Pod", "name": "p"}],
    }
    found = dict(heading({"kind": "K", "metadata": metadata}, NOW))
    assert found["Created"] == "2026-01-01T00:00:00Z (24h ago)"
    assert (found["Deleted"], found["Finalizers"]) == ("2026-01-01T23:59:00Z (60s ago)", ["a/b"])
    assert found["Owned by"] == ["Pod/p"]
    assert "Namespace" not in found
