import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cli.tables import Columns, Layout, cell_text, label_text, plain_table, printable, rows_of


def test_columns_are_three_apart_and_at_least_six_wide() -> None:
    assert list(Layout().lines([["A", "LONG", "B"], ["x", "longest", ""]])) == ["A     LONG      B", "x     longest   "]


def test_later_lines_keep_the_width_of_earlier_ones() -> None:
    layout = Layout()
    list(layout.lines([["a-long-name", "x"]]))
    assert list(layout.lines([["b", "y"]])) == ["b             y"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (3, "3"),
        (3.0, "3"),
        (2.5, "2.5"),
        ("a\nb", "a..."),
        ("a\r", "a..."),
        ("", ""),
        ("\x1b[31mred", "^[[31mred"),
        ("a\x7f", "a^?"),
    ],
)
def test_a_cell_is_on_one_line_and_moves_no_cursor(value: object, text: str) -> None:
    assert cell_text(value) == text


@given(st.text())
def test_no_control_character_reaches_the_terminal(text: str) -> None:
    assert not {c for c in printable(text) if ord(c) < 32 and c != "\t"}


def test_columns_are_chosen_and_extended() -> None:
    definitions = [{"name": "Name", "format": "name"}, {"name": "Node", "priority": 1}, {"name": "Age"}]
    row = {"cells": ["p", "n1", "5s"], "object": {"metadata": {"namespace": "x", "labels": {"b": "1", "a": "2"}}}}
    plain = Columns({"columnDefinitions": definitions}, wide=False, namespaces=False, labels=False)
    assert (plain.header, plain.row(row)) == (["NAME", "AGE"], ["p", "5s"])
    full = Columns({"columnDefinitions": definitions}, wide=True, namespaces=True, labels=True, prefix="pod")
    assert full.header == ["NAMESPACE", "NAME", "NODE", "AGE", "LABELS"]
    assert full.row(row) == ["x", "pod/p", "n1", "5s", "a=2,b=1"]
    assert full.row({}) == ["", "pod/", "", "", "<none>"]


def test_a_server_without_tables_gives_names_and_times() -> None:
    table = plain_table([{"metadata": {"name": "n", "creationTimestamp": "t"}}])
    assert [row["cells"] for row in rows_of(table)] == [["n", "t"]]


def test_no_labels_are_said() -> None:
    assert label_text(None) == label_text({}) == "<none>"
