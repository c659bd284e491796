"""Functions on lists."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devlet.cel.functions import Range
from devlet.cel.issues import CompileError

_QUICK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
_INTS = st.lists(st.integers(-5, 5), max_size=30)
_TEXTS = st.lists(st.text("abé", max_size=3), max_size=30)
Value = Callable[..., Any]


@_QUICK
@given(st.one_of(_INTS, _TEXTS))
def test_lists_are_what_python_makes_of_them(value: Value, items: list[Any]) -> None:
    assert value("x.sort()", x=items) == sorted(items)
    assert value("x.reverse()", x=items) == items[::-1]
    assert value("x.distinct()", x=items) == list(dict.fromkeys(items))
    assert value("[x, x].flatten()", x=items) == items + items
    assert value("x.sortBy(y, [y].size())", x=items) == items


@_QUICK
@given(_INTS)
def test_sorting_by_a_key_keeps_the_order_of_equals(value: Value, items: list[int]) -> None:
    assert value("x.sortBy(y, y * y)", x=items) == sorted(items, key=lambda item: item * item)


@_QUICK
@given(_INTS, st.integers(0, 30), st.integers(0, 30))
def test_a_slice_is_cut_or_refused(run: Callable[..., Any], items: list[int], start: int, end: int) -> None:
    evaluation = run("x.slice(a, b)", x=items, a=start, b=end)
    if start <= end <= len(items):
        assert evaluation.value == items[start:end]
    else:
        assert evaluation.error.message.startswith(f"cannot slice({start}, {end}), ")


def test_slices_say_what_is_wrong(error: Callable[..., str]) -> None:
    assert error("[1].slice(-1, 1)") == "cannot slice(-1, 1), negative indexes not supported"
    assert error("[1].slice(1, 0)") == "cannot slice(1, 0), start index must be less than or equal to end index"
    assert error("[1].slice(0, 2)") == "cannot slice(0, 2), list is length 1"


def test_flattening_goes_as_deep_as_is_asked(value: Value, error: Callable[..., str]) -> None:
    nested = [1, [2, [3, [4]]]]
    assert [value("x.flatten(n)", x=nested, n=n) for n in (0, 1, 2, 9)] == [
        nested,
        [1, 2, [3, [4]]],
        [1, 2, 3, [4]],
        [1, 2, 3, 4],
    ]
    assert error("[[1]].flatten(-1)") == "level must be non-negative"
    assert error("dyn(1).flatten()") == "no such overload: int.flatten()"
    assert (
        error("[[1]].flatten(dyn('a'))")
        == "internal error: interface conversion: ref.Val is types.String, not types.Int"
    )


def test_a_range_starts_at_zero_and_may_be_empty(value: Value, error: Callable[..., str]) -> None:
    assert value("[lists.range(3), lists.range(0), lists.range(-1)]") == [[0, 1, 2], [], []]
    assert error("lists.range(9000000000000000000)") == "operation cancelled: actual cost limit exceeded"


def test_distinct_takes_numbers_of_all_types_for_one(value: Value) -> None:
    assert value("x.distinct()", x=[1, 1.0, True, "1", [1], [1.0], None, None]) == [1, True, "1", [1], None]


def test_only_comparable_values_of_one_type_are_sorted(value: Value, error: Callable[..., str]) -> None:
    assert error("[dyn(1), dyn('a')].sort()") == "list elements must have the same type"
    assert error("[dyn(null)].sort()") == "list elements must be comparable"
    assert error("dyn(1).sort()") == "no such overload: sort"
    assert error("dyn('a').sort()") == "no such overload"
    assert value("[dyn([])].sortBy(x, 1)") == [[]]
    assert value("[2.0, 1.0].sort()") == [1.0, 2.0]
    assert len(value("x.sort()", x=[1.0, float("nan"), 0.0])) == 3


def test_keys_for_sorting_match_the_list(error: Callable[..., str]) -> None:
    from devlet.cel.library.lists import LIBRARY

    by_keys = next(f for f in LIBRARY.functions if f.name == "@sortByAssociatedKeys")
    assert by_keys.dispatch
    with pytest.raises(Exception, match="got 1 and 2 elements respectively"):
        by_keys.dispatch([1], [1, 2])
    with pytest.raises(Exception, match="no such overload: @sortByAssociatedKeys"):
        by_keys.dispatch({}, [])


def test_sort_by_is_for_what_can_be_a_list(run: Callable[..., Any]) -> None:
    with pytest.raises(CompileError, match="sortBy can only be applied to a list, identifier"):
        run("{1: 2}.sortBy(x, x)")


@pytest.mark.spec("DA-4.3o")
def test_an_argument_that_fails_crashes_the_count_of_the_cost(error: Callable[..., str]) -> None:
    crash = "internal error: interface conversion: "
    assert error("{'a': [1]}['b'].distinct() == [] || true").startswith(f"{crash}*types.Err is not traits.Lister")
    assert error("dyn(1).distinct()") == f"{crash}types.Int is not traits.Lister: missing method Contains"
    assert error("dyn(true).distinct()") == f"{crash}types.Bool is not traits.Lister: missing method Add"
    assert error("{'a': [1]}['b'].reverse()") == "no such key: b"


def test_sorting_costs_the_square_of_the_length(run: Callable[..., Any], estimated: Callable[[str], Range]) -> None:
    # 10 for the literal, which is constant and costs nothing at run time; 1 for the call; 10 for the new list.
    assert run("[3, 1, 2].sort()").cost == 2 * 9 + 1 + 10
    assert run("['a', 'b'].distinct()").cost == int(4 * 2.1) + 1 + 10
    assert run("[].distinct()").cost == 11
    assert estimated("[3, 1, 2].sort()") == Range(10 + 18 + 11, 10 + 18 + 11)
    assert estimated("lists.range(5).slice(1, 3)") == Range(16 + 13, 16 + 13)
    assert estimated("[1].slice(3, 1)").max == 2**64 - 1


def test_sorting_what_is_not_known_before_costs_one(run: Callable[..., Any]) -> None:
    assert run("x.sort()", x=[3, 1, 2]).cost == 2
