"""Lists as sets."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

_LISTS = st.lists(st.integers(0, 5), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(_LISTS, _LISTS)
def test_lists_are_compared_as_pythons_sets(value: Callable[..., Any], a: list[int], b: list[int]) -> None:
    answers = value("[sets.contains(a, b), sets.equivalent(a, b), sets.intersects(a, b)]", a=a, b=b)
    assert answers == [set(b) <= set(a), set(a) == set(b), bool(set(a) & set(b))]


def test_elements_may_be_anything(value: Callable[..., Any], error: Callable[..., str]) -> None:
    assert value("sets.contains(a, b)", a=[1, "a", [2]], b=[[2.0], 1.0])
    assert not value("sets.contains(a, b)", a=[1], b=[True])
    assert error("sets.contains(dyn(1), [1])") == "no such overload: sets.contains(int, list)"


def test_each_is_compared_with_each_and_twice_for_equivalence(run: Callable[..., Any]) -> None:
    costs = [run(f"sets.{name}([1, 2, 3], [1, 2])").cost for name in ("contains", "intersects", "equivalent")]
    assert costs == [7, 7, 13]


def test_long_lists_of_numbers_take_no_time(run: Callable[..., Any]) -> None:
    evaluation = run("sets.contains(lists.range(400000), lists.range(400000))")
    assert evaluation.error.message == "operation cancelled: actual cost limit exceeded"
