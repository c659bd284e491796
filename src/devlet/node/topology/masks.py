"""Sets of NUMA nodes as the bits of an int: node 3 is bit 3.

A mask can contain the nodes 0 to 63, and no others.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from devlet.errors import InvalidInput
from devlet.node.topology.hints import Mask

__all__ = ["MAX_NODE", "bits", "contains", "count", "iterate", "narrower", "nodes"]

MAX_NODE = 63


def bits(nodes: Iterable[int]) -> Mask:
    """Return the mask of these nodes. Raise InvalidInput if a node is out of range."""
    mask = 0
    for node in nodes:
        if not 0 <= node <= MAX_NODE:
            raise InvalidInput(f"NUMA node {node}: a mask can only contain the nodes 0 to {MAX_NODE}")
        mask |= 1 << node
    return mask


def nodes(mask: Mask) -> tuple[int, ...]:
    """Return the nodes of a mask in ascending order."""
    return tuple(node for node in range(mask.bit_length()) if mask >> node & 1)


def contains(mask: Mask, node: int) -> bool:
    return 0 <= node <= MAX_NODE and bool(mask >> node & 1)


def count(mask: Mask) -> int:
    return mask.bit_count()


def narrower(a: Mask, b: Mask) -> bool:
    """Return True if `a` has fewer nodes than `b`, or as many but lower ones."""
    return (a.bit_count(), a) < (b.bit_count(), b)


def iterate(nodes: Sequence[int], sizes: Iterable[int] | None = None) -> Iterator[Mask]:
    """Yield all combinations of the nodes except the empty one, by size and then in the order of the list."""
    for size in range(1, len(nodes) + 1) if sizes is None else sizes:
        yield from map(bits, combinations(nodes, size))
