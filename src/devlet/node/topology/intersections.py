"""All masks that arise if one mask of each of two sets are put together by AND.

Pair by pair that is quick for a few nodes; with sixteen it would be four thousand million pairs. Then the answer is
counted instead: how many pairs have both masks above a given one is a product of two numbers, and from these counts for
all masks follows how many pairs meet in exactly that one.
"""

from collections.abc import Set
from functools import reduce
from operator import add, mul, or_, sub

from devlet.node.topology import masks
from devlet.node.topology.hints import Mask

__all__ = ["intersections"]

_COUNTED_MAX = 20  # nodes: beyond, a table of all masks is too large


def intersections(left: Set[Mask], right: Set[Mask]) -> set[Mask]:
    shared = reduce(or_, left, 0) & reduce(or_, right, 0)
    left = {mask & shared for mask in left}
    right = {mask & shared for mask in right}
    size = masks.count(shared)
    if size > _COUNTED_MAX or len(left) * len(right) <= 4 * size << size:
        return {a & b for a in left for b in right}
    return _counted(left, right, shared)


def _counted(left: Set[Mask], right: Set[Mask], shared: Mask) -> set[Mask]:
    every = _submasks(shared)
    above_left = _sum_above([int(mask in left) for mask in every])
    above_right = _sum_above([int(mask in right) for mask in every])
    pairs = _undo_sum_above(list(map(mul, above_left, above_right)))
    return {mask for mask, number in zip(every, pairs, strict=True) if number}


def _submasks(mask: Mask) -> list[Mask]:
    """All of them; the position in the list, read in binary, says which of the nodes one has."""
    every = [0]
    for node in masks.nodes(mask):
        every += [each | 1 << node for each in every]
    return every


def _sum_above(values: list[int]) -> list[int]:
    """At each position the sum over all positions that have at least its bits."""
    for _ in range(len(values).bit_length() - 1):
        # The lowest bit is dealt with and becomes the highest, so that after all of them each is in its place again.
        without, having = values[0::2], values[1::2]
        values = [*map(add, without, having), *having]
    return values


def _undo_sum_above(values: list[int]) -> list[int]:
    for _ in range(len(values).bit_length() - 1):
        without, having = values[0::2], values[1::2]
        values = [*map(sub, without, having), *having]
    return values
