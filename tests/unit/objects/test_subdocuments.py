"""Reaching into documents of any shape."""

from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.objects.subdocuments import ensure, fill, fill_empty, is_empty, mapping, mappings, values

WRONG: list[Any] = [None, 7, "text", True]


@pytest.mark.parametrize("wrong", [*WRONG, []])
def test_a_value_that_is_no_object_counts_as_no_object(wrong: Any) -> None:
    assert mapping({"a": wrong}, "a") is None
    assert values({"a": wrong}, "a") == []
    assert mapping({}, "a") is None


@pytest.mark.parametrize("wrong", [*WRONG, {}])
def test_a_value_that_is_no_list_has_no_objects(wrong: Any) -> None:
    assert mappings({"a": wrong}, "a") == []


def test_only_the_objects_among_the_members_are_found() -> None:
    inner: Document = {}
    assert mappings({"a": [1, inner, None]}, "a")[0] is inner
    assert values({"a": {"x": inner, "y": 1}}, "a")[0] is inner


def test_ensure_puts_an_object_where_there_is_none() -> None:
    parent: Document = {"null": None, "wrong": "text"}
    ensure(parent, "absent")["x"] = 1
    ensure(parent, "null")["x"] = 2
    ensure(parent, "wrong")["x"] = 3
    assert parent == {"absent": {"x": 1}, "null": {"x": 2}, "wrong": "text"}


def test_fill_keeps_zero_values_and_fill_empty_does_not() -> None:
    parent: Document = {"a": 0, "b": "", "c": False, "d": None, "e": []}
    for key in (*parent, "f"):
        fill(parent, key, "default")
    assert parent == {"a": 0, "b": "", "c": False, "d": "default", "e": [], "f": "default"}
    for key in parent:
        fill_empty(parent, key, "other")
    assert parent == {"a": "other", "b": "other", "c": False, "d": "default", "e": [], "f": "default"}


def test_false_and_empty_lists_are_values() -> None:
    empty: list[Any] = [None, "", 0]
    present: list[Any] = [False, [], {}, 1, "x"]
    assert all(map(is_empty, empty))
    assert not any(map(is_empty, present))
