"""Membership."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.library.members import is_equal, membership, same_plain_type
from devlet.cel.operators import contains
from devlet.cel.values import CostExceeded, Uint
from devlet.objects.values.semver import parse

_VALUES = st.one_of(
    st.integers(-2, 2), st.booleans(), st.sampled_from(("", "a", "1")), st.floats(-2, 2), st.just(float("nan")),
    st.integers(0, 2).map(Uint), st.none(), st.lists(st.integers(0, 1), max_size=1),
)  # fmt: skip


@given(st.lists(_VALUES, max_size=6), _VALUES)
def test_finding_by_hash_is_finding_by_comparison(values: list[Any], item: Any) -> None:
    assert membership(values, 1)(item) == contains(item, values)


@given(st.lists(st.integers(0, 3)), st.integers(0, 3))
def test_numbers_of_another_type_are_found_too(values: list[int], item: int) -> None:
    assert membership(values, 1)(float(item)) == (item in values) == membership(values, 1)(Uint(item))


def test_values_that_cannot_be_compared_are_not_equal() -> None:
    assert not is_equal(parse("1.0.0"), 1)
    assert is_equal(1, 1.0)
    assert not is_equal(1, True)


def test_only_values_of_one_plain_type_are_found_by_hash() -> None:
    assert same_plain_type([]) and same_plain_type([1, 2]) and same_plain_type(["a"])
    assert not (same_plain_type([1, True]) or same_plain_type([1.0]) or same_plain_type([[1]]))


def test_too_many_comparisons_are_rejected_in_advance() -> None:
    with pytest.raises(CostExceeded):
        membership([[1]] * 10_000, 10_000)
