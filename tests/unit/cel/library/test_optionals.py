from typing import Any

import pytest

from devlet.cel.library.optionals import LIBRARY, is_zero
from devlet.cel.types import INT
from devlet.cel.values import NONE, TIMESTAMP_MIN, CelError, Duration, Optional, Timestamp, Uint
from devlet.objects.values.quantity import Quantity

CALLS = {overload.id: overload.call for function in LIBRARY.functions for overload in function.overloads}


@pytest.mark.parametrize(
    "value", [None, False, 0, Uint(0), 0.0, "", b"", [], (), {}, Duration(0), Timestamp(TIMESTAMP_MIN)]
)
def test_the_zero_of_a_type_is_no_value(value: Any) -> None:
    assert is_zero(value)
    assert CALLS["optional_ofNonZeroValue"](value) is NONE
    assert CALLS["optional_of"](value).has_value


@pytest.mark.parametrize("value", [True, 1, "a", [0], {"a": 0}, Timestamp(0), NONE, INT, Quantity.parse("0")])
def test_everything_else_is_a_value(value: Any) -> None:
    assert CALLS["optional_ofNonZeroValue"](value) == Optional(value)


def test_the_value_of_nothing_is_an_error() -> None:
    assert CALLS["optional_value"](Optional(5)) == 5
    with pytest.raises(CelError, match=r"optional.none\(\) dereference"):
        CALLS["optional_value"](CALLS["optional_none"]())


def test_the_first_optional_with_a_value_wins() -> None:
    either, or_value = CALLS["optional_or_optional"], CALLS["optional_orValue_value"]
    assert either(NONE, Optional(1)) == Optional(1)
    assert either(Optional(2), Optional(1)) == Optional(2)
    assert or_value(NONE, 1) == 1
    assert or_value(Optional(None), 1) is None


def test_a_value_that_is_not_optional_stays_unchanged() -> None:
    assert CALLS["optional_or_optional"](5, NONE) == 5
    assert CALLS["optional_orValue_value"](5, 1) == 5


def test_lists_have_a_first_and_a_last_element_unless_they_are_empty() -> None:
    assert CALLS["list_first"]([1, 2]) == Optional(1)
    assert CALLS["list_last"]([1, 2]) == Optional(2)
    assert CALLS["list_first"]([]) == CALLS["list_last"]([]) == NONE


def test_unwrap_leaves_out_what_is_missing() -> None:
    assert CALLS["optional_unwrap"]([Optional(1), NONE, Optional(None)]) == [1, None]
    with pytest.raises(CelError, match="value true is not optional"):
        CALLS["optional_unwrapOpt"]([Optional(1), True])


def test_indexing_an_optional_gives_an_optional() -> None:
    assert CALLS["optional_list_index_int"](Optional([5]), 0) == Optional(5)
    assert CALLS["map_optindex_optional_value"]({"a": 1}, "b") == NONE
    assert CALLS["select_optional_field"]({"a": 1}, "a") == Optional(1)


def test_macros_come_with_the_library() -> None:
    assert set(LIBRARY.macros) == {"optMap", "optFlatMap"}
