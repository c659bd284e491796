"""Intersections of masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.node.topology import masks
from devlet.node.topology.intersections import intersections

few = st.frozensets(st.integers(0, 2**64 - 1), max_size=20)


@st.composite
def dense(draw: st.DrawFn) -> set[int]:
    """Return most masks of eight nodes that have at least some number of nodes: counting is then cheaper than pairs."""
    least, needed = draw(st.integers(0, 5)), draw(st.sampled_from([0, 0b1, 0b1000_0000]))
    every = {mask for mask in range(256) if masks.count(mask) >= least and mask & needed == needed}
    return every - draw(st.frozensets(st.integers(0, 255), max_size=2))


@given(few, few)
def test_masks_far_apart_give_what_all_pairs_give(left: frozenset[int], right: frozenset[int]) -> None:
    assert intersections(left, right) == {a & b for a in left for b in right}


@given(dense(), dense(), st.lists(st.integers(0, 63), min_size=8, max_size=8, unique=True))
def test_many_masks_of_few_nodes_give_what_all_pairs_give(left: set[int], right: set[int], places: list[int]) -> None:
    def moved(every: set[int]) -> set[int]:
        return {masks.bits(places[node] for node in masks.nodes(mask)) for mask in every}

    left, right = moved(left), moved(right)
    assert intersections(left, right) == {a & b for a in left for b in right}


def test_nothing_meets_nothing() -> None:
    assert intersections(set(), {1}) == set()
    assert intersections({1}, {2}) == {0}


@pytest.mark.spec("DP-9.29")
def test_sixteen_nodes_do_not_take_four_thousand_million_pairs() -> None:
    every = set(range(1, 2**16))
    assert intersections(every, every) == every | {0}
