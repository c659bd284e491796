"""`includes` of one value or of a list."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.library.includes import MAX_VALUES

Value = Callable[..., Any]


@pytest.mark.spec("DA-4.3k")
def test_a_list_includes_its_elements_and_a_value_itself(value: Value) -> None:
    assert value("x.includes('a')", x=["b", "a"]) and not value("x.includes('c')", x=["b", "a"])
    assert value("x.includes('a')", x="a") and not value("x.includes('c')", x="a")
    assert value("x.includes(1.0)", x=[1])


def test_what_cannot_be_compared_is_not_included(value: Value) -> None:
    assert not value("x.includes(1)", x=["a", None])
    assert not value('semver("1.0.0").includes(1)')


@pytest.mark.spec("DA-4.3k")
def test_a_list_that_is_too_long_fails_unless_the_value_comes_early(value: Value, error: Callable[..., str]) -> None:
    too_long = list(range(MAX_VALUES + 1))
    assert value("x.includes(47)", x=too_long)
    assert error("x.includes(48)", x=too_long) == "'includes' function cannot be applied to lists longer than 48 values"
    assert not value("x.includes(48)", x=too_long[:-1])


def test_it_costs_one(run: Callable[..., Any]) -> None:
    assert run("x.includes(2)", x=[1, 2, 3]).cost == 2
