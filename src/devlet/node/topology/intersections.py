"""All intersections of a mask of one set with a mask of another.

With a few nodes, pairs are intersected one by one. With sixteen nodes that would be four billion pairs, so the pairs
are counted instead: the number of pairs whose masks both contain a given mask is a product of two numbers, and these
products for all masks give the number of pairs whose intersection is exactly that mask.
"""

from collections.abc import Set
from functools import reduce
from operator import add, mul, or_, sub

from devlet.node.topology import masks
from devlet.node.topology.hints import Mask

__all__ = ["intersections"]

_COUNTED_MAX = 20  # nodes; with more, a table of all masks is too large


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
    """Return all submasks. The bits of the position in the list select nodes of the mask."""
    every = [0]
    for node in masks.nodes(mask):
        every += [each | 1 << node for each in every]
    return every


def _sum_above(values: list[int]) -> list[int]:
    """Return at each position the sum over all positions that have at least its bits."""
    for _ in range(len(values).bit_length() - 1):
        # Handle the lowest bit and make it the highest. After all rounds, each bit is in its place again.
        without, having = values[0::2], values[1::2]
        values = [*map(add, without, having), *having]
    return values


def _undo_sum_above(values: list[int]) -> list[int]:
    for _ in range(len(values).bit_length() - 1):
        without, having = values[0::2], values[1::2]
        values = [*map(sub, without, having), *having]
    return values
