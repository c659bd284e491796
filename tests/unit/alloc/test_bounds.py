from collections.abc import Hashable, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.alloc.bounds import can_suffice

Wish = tuple[int, frozenset[Hashable]]


def wish(number: int, kinds: str) -> Wish:
    return (number, frozenset(kinds))


@pytest.mark.parametrize(
    ("wanted", "supply", "suffices"),
    [
        ([], {}, True),
        ([wish(1, "a")], {"a": 1}, True),
        ([wish(2, "a")], {"a": 1}, False),
        ([wish(1, "")], {"a": 1}, False),
        ([wish(0, "")], {}, True),
        ([wish(1, "a"), wish(1, "a")], {"a": 1}, False),
        ([wish(2, "ab"), wish(1, "a")], {"a": 1, "b": 2}, True),
        ([wish(1, "ab"), wish(1, "a"), wish(1, "bc"), wish(1, "b")], {"a": 1, "b": 1, "c": 1}, False),
        ([wish(1, "ab"), wish(1, "bc"), wish(1, "cd"), wish(1, "a")], {"a": 1, "b": 1, "c": 1, "d": 1}, True),
    ],
)
def test_wishes_can_be_satisfied_or_not(wanted: Sequence[Wish], supply: dict[Hashable, int], suffices: bool) -> None:
    assert can_suffice(wanted, supply) is suffices


def test_a_wish_gives_back_what_another_needs_more() -> None:
    wanted = [wish(3, "abc"), wish(2, "ab"), wish(1, "a")]
    assert can_suffice(wanted, {"a": 1, "b": 2, "c": 3})
    assert not can_suffice(wanted, {"a": 1, "b": 1, "c": 4})


def by_hand(wanted: Sequence[Wish], supply: dict[Hashable, int]) -> bool:
    """One device after the other, each way."""
    single = [kinds for number, kinds in wanted for _ in range(number)]
    return any(all(chosen.count(kind) <= supply.get(kind, 0) for kind in chosen) for chosen in product(*single))


WISHES = st.lists(st.tuples(st.integers(0, 2), st.frozensets(st.sampled_from("abc"))), max_size=4)


@given(WISHES, st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)))
def test_the_bound_is_exact_where_only_kinds_count(wanted: list[Wish], supply: dict[Hashable, int]) -> None:
    assert can_suffice(wanted, supply) is by_hand(wanted, supply)


def test_thousands_of_wishes_are_counted_at_once() -> None:
    wanted = [wish(1, "ab") for _ in range(3000)]
    assert can_suffice(wanted, {"a": 1000, "b": 2000})
    assert not can_suffice(wanted, {"a": 1000, "b": 1999})
