"""Masks of NUMA nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.node.topology import masks

node_sets = st.sets(st.integers(0, 63))


def test_a_node_is_a_bit() -> None:
    assert masks.bits([0, 2, 63]) == 1 | 4 | 1 << 63


@pytest.mark.parametrize("node", [-1, 64, 1000])
def test_a_node_outside_of_0_to_63_cannot_be_in_a_mask(node: int) -> None:
    with pytest.raises(InvalidInput, match=f"NUMA node {node}: .* 0 to 63"):
        masks.bits([0, node])
    assert not masks.contains(2**64 - 1, node)


@given(node_sets)
def test_the_nodes_of_a_mask_are_listed(nodes: set[int]) -> None:
    mask = masks.bits(nodes)
    assert masks.nodes(mask) == tuple(sorted(nodes))
    assert masks.count(mask) == len(nodes)
    assert {node for node in range(64) if masks.contains(mask, node)} == nodes


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([3], [0, 1], True),
        ([0, 1], [3], False),
        ([0, 1], [0, 2], True),
        ([0, 2], [0, 1], False),
        ([0, 3], [1, 2], False),
        ([1], [1], False),
        ([], [0], True),
    ],
)
def test_narrower_is_fewer_nodes_or_lower_ones(a: list[int], b: list[int], expected: bool) -> None:
    assert masks.narrower(masks.bits(a), masks.bits(b)) is expected


def test_masks_are_generated_by_size_and_then_in_the_order_of_the_list() -> None:
    found = [masks.nodes(mask) for mask in masks.iterate([2, 0, 5])]
    assert found == [(2,), (0,), (5,), (0, 2), (2, 5), (0, 5), (0, 2, 5)]


def test_masks_of_given_sizes_are_generated() -> None:
    assert [masks.count(mask) for mask in masks.iterate(range(4), sizes=(1, 4))] == [1, 1, 1, 1, 4]


@given(st.sets(st.integers(0, 63), max_size=8))
def test_each_combination_is_generated_once_except_the_empty_one(nodes: set[int]) -> None:
    found = list(masks.iterate(sorted(nodes)))
    assert len(found) == len(set(found)) == 2 ** len(nodes) - 1
    assert 0 not in found
