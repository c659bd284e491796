"""Maps that are built entry by entry."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Value = Callable[..., Any]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.dictionaries(st.text(max_size=2), st.integers(-5, 5)))
def test_maps_are_transformed_entry_by_entry(value: Value, entries: dict[str, int]) -> None:
    assert value("m.transformMap(k, v, v + 1)", m=entries) == {k: v + 1 for k, v in entries.items()}
    assert value("m.transformMap(k, v, v > 0, k)", m=entries) == {k: k for k, v in entries.items() if v > 0}
    assert value("m.transformMapEntry(k, v, {k + '!': v})", m=entries) == {k + "!": v for k, v in entries.items()}


def test_a_list_becomes_a_map_by_index(value: Value) -> None:
    assert value("['a', 'b'].transformMap(i, v, v)") == {0: "a", 1: "b"}


def test_a_key_is_inserted_once(error: Callable[..., str]) -> None:
    assert error("[1, 2].transformMapEntry(i, v, {'x': v})") == "insert failed: key x already exists"
    assert error("[1, 2].transformMapEntry(i, v, {true: v})") == "insert failed: key true already exists"


def test_the_same_expression_starts_with_an_empty_map_each_time(value: Value) -> None:
    expression = "[1, 2].transformList(i, v, [v].transformMap(j, w, w))"
    assert value(expression) == value(expression) == [{0: 1}, {0: 2}]


def test_large_maps_are_built_in_linear_time(value: Value) -> None:
    assert len(value("x.transformMap(i, v, i)", x=list(range(20_000)))) == 20_000
