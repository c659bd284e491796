"""Documents of any shape."""

from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.objects.subdocuments import (
    at,
    ensure,
    fill,
    fill_empty,
    is_empty,
    mapping,
    mappings,
    metadata,
    name,
    number,
    text,
    texts,
    values,
)

WRONG: list[Any] = [None, 7, "text", True]


@pytest.mark.parametrize("wrong", [*WRONG, []])
def test_a_value_of_another_type_counts_as_no_object(wrong: Any) -> None:
    assert mapping({"a": wrong}, "a") is None
    assert values({"a": wrong}, "a") == []
    assert mapping({}, "a") is None


@pytest.mark.parametrize("wrong", [*WRONG, {}])
def test_a_value_that_is_not_a_list_has_no_objects(wrong: Any) -> None:
    assert mappings({"a": wrong}, "a") == []


def test_only_the_objects_among_the_items_are_found() -> None:
    inner: Document = {}
    assert mappings({"a": [1, inner, None]}, "a")[0] is inner
    assert values({"a": {"x": inner, "y": 1}}, "a")[0] is inner


@pytest.mark.parametrize(
    "document", [{}, {"a": None}, {"a": "x"}, {"a": [1, "x", None]}, {"a": {"b": {}}}, None, [], 7]
)
def test_a_path_that_does_not_exist_finds_nothing(document: Any) -> None:
    assert at(document, "a", "b", "c") is None
    assert text(document, "a", "b") == ""
    assert number(document, "a", "b") == 0
    assert mappings(document, "a", "b") == []
    assert values(document, "a", "b") == []
    assert metadata(document) == {}
    assert name(document) == ""


def test_a_path_finds_values_of_its_type() -> None:
    document: Document = {
        "metadata": {"name": "x", "labels": {"a": "b"}},
        "a": {"b": [{"c": 1}, 2, "d"]},
        "e": {"n": 3},
    }
    assert mapping(document, "metadata", "labels") == {"a": "b"}
    assert mappings(document, "a", "b") == [{"c": 1}]
    assert texts(document, "a", "b") == ["d"]
    assert number(document, "e", "n") == 3
    assert metadata(document)["name"] == name(document) == "x"


def test_booleans_are_not_numbers() -> None:
    assert number({"a": True}, "a") == 0


def test_only_the_strings_of_a_list_are_found() -> None:
    assert texts({"a": [1, "x", None]}, "a") == ["x"]


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
