"""What Kubernetes adds to lists."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devlet.cel.functions import Range
from devlet.cel.values import Duration, Uint

_QUICK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)


@_QUICK
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.integers(-5, 5))
def test_lists_of_numbers_are_what_python_makes_of_them(value: Callable[..., Any], items: list[int], one: int) -> None:
    assert value("[x.sum(), x.min(), x.max()]", x=items) == [sum(items), min(items), max(items)]
    assert value("x.isSorted()", x=items) == (items == sorted(items))
    assert value("x.indexOf(y)", x=items, y=one) == (items.index(one) if one in items else -1)
    last = len(items) - 1 - items[::-1].index(one) if one in items else -1
    assert value("x.lastIndexOf(y)", x=items, y=one) == last


def test_durations_and_other_types_work_too(value: Callable[..., Any]) -> None:
    assert value('[duration("1m"), duration("1s")].sum()') == Duration(61 * 10**9)
    assert value("[1u, 2u].sum()") == Uint(3)
    assert value("[1.5, 2.0].sum()") == 3.5
    assert value("[[].sum(), [0].sum()]") == [0, 0]
    assert value('["a", "b"].isSorted() && [false, true].isSorted() && [b"a", b"a"].isSorted()')
    assert value('["b", "a"].min() + ["b", "a"].max()') == "ab"


def test_an_empty_list_has_no_least_and_a_sum_can_overflow(error: Callable[..., str]) -> None:
    assert error("[].min()") == "min called on empty list"
    assert error("[].max()") == "max called on empty list"
    assert error("[9223372036854775807, 1].sum()") == "integer overflow"


@pytest.mark.parametrize(
    ("expression", "expected"), [("x.isSorted()", True), ("x.min()", 2), ("x.max()", 2), ("x.indexOf('a')", 1)]
)
def test_values_without_a_common_order_count_as_sorted(
    value: Callable[..., Any], expression: str, expected: object
) -> None:
    assert value(expression, x=[2, "a"]) == expected


def test_values_without_any_order_are_an_error(error: Callable[..., str]) -> None:
    assert error("x.isSorted()", x=[1, None]) == "no such overload"
    assert error("x.min()", x=[1, None]) == "no such overload"
    assert error("x.max()", x=[1, None]) == "no such overload"
    assert error("x.sum()", x=[1, None]) == "no such overload"
    assert error("x.sum()", x=["a"]) == "no such overload: sum(list)"


def test_the_cost_is_that_of_looking_at_all_of_it(run: Callable[..., Any], estimated: Callable[[str], Range]) -> None:
    assert run("[1, 2, 3].sum()").cost == 3
    assert run(f"['{'a' * 25}'].isSorted()").cost == 2
    assert estimated("[1, 2, 3].sum()") == Range(13, 13)
    assert estimated("['a', 'b'].isSorted()").max > 10**18
