"""Sets of NUMA nodes as the bits of an int: node 3 is bit 3.

A mask has room for nodes 0 to 63. A node beyond cannot be put into one, but may be asked for: it is in none.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from devlet.errors import InvalidInput
from devlet.node.topology.hints import Mask

__all__ = ["MAX_NODE", "bits", "contains", "count", "iterate", "narrower", "nodes"]

MAX_NODE = 63


def bits(nodes: Iterable[int]) -> Mask:
    """The mask of these nodes."""
    mask = 0
    for node in nodes:
        if not 0 <= node <= MAX_NODE:
            raise InvalidInput(f"NUMA node {node}: a mask has room for nodes 0 to {MAX_NODE}")
        mask |= 1 << node
    return mask


def nodes(mask: Mask) -> tuple[int, ...]:
    """The nodes of a mask, ascending."""
    return tuple(node for node in range(mask.bit_length()) if mask >> node & 1)


def contains(mask: Mask, node: int) -> bool:
    return 0 <= node <= MAX_NODE and bool(mask >> node & 1)


def count(mask: Mask) -> int:
    return mask.bit_count()


def narrower(a: Mask, b: Mask) -> bool:
    """Whether `a` has fewer nodes than `b`, or as many but lower ones."""
    return (a.bit_count(), a) < (b.bit_count(), b)


def iterate(nodes: Sequence[int], sizes: Iterable[int] | None = None) -> Iterator[Mask]:
    """All combinations of the nodes, by size and then in the order of the list; never the empty one."""
    for size in range(1, len(nodes) + 1) if sizes is None else sizes:
        yield from map(bits, combinations(nodes, size))
