"""Sizes and costs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.functions import UNBOUNDED, Range, SizedNode
from devlet.cel.library import ranges
from devlet.cel.library.ip import parse_ip
from devlet.cel.types import STRING
from devlet.cel.values import CostExceeded

_SIZES = st.one_of(st.integers(0, 100), st.integers(0, UNBOUNDED))


@given(_SIZES, _SIZES)
def test_sums_and_products_saturate(a: int, b: int) -> None:
    assert ranges.plus(Range(a, a), Range(b, b)).max == min(a + b, UNBOUNDED)
    assert ranges.times(Range(a, a), Range(b, b)).min == min(a * b, UNBOUNDED)


@given(st.integers(0, 10**9))
def test_a_scaled_size_is_rounded_up(size: int) -> None:
    assert ranges.scaled(Range(0, size), 0.1) == Range(0, math.ceil(size * 0.1))


def test_unbounded_stays_unbounded_unless_it_is_scaled_down() -> None:
    assert ranges.scaled(ranges.ANY_SIZE, 1.5) == ranges.ANY_SIZE
    assert ranges.scaled(ranges.ANY_SIZE, 0.1).max == 1844674407370955264


def test_an_unknown_size_is_unbounded() -> None:
    unknown, known = SizedNode(STRING, (), None), SizedNode(STRING, (), Range(1, 25))
    assert ranges.size_of(unknown) == ranges.ANY_SIZE
    estimate = ranges.scan()(None, (known,))
    assert estimate is not None
    assert estimate.cost == Range(1, 3)


def test_sizes_of_values_are_counted_in_characters_elements_or_bytes_of_an_address() -> None:
    sizes = [ranges.actual_size(value) for value in ("äö", b"abc", [1, 2], {1: 2}, parse_ip("::1"), 7, None)]
    assert sizes == [2, 3, 2, 1, 16, 1, 1]


def test_traversing_short_strings_is_free() -> None:
    assert ranges.traversal_cost(["ab", "ä" * 10, b"x" * 19]) == 0 + 2 + 1
    assert ranges.traversal_cost({"k": [1, True]}) == 2


def test_a_call_that_would_take_too_long_is_not_started() -> None:
    ranges.check_steps(ranges.MAX_STEPS)
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"):
        ranges.check_steps(ranges.MAX_STEPS + 1)
