"""A node as the allocator sees it: its pools, at a revision of the slices."""

from functools import cached_property

from devlet.alloc.inventory import PoolKey
from devlet.alloc.pools import Pool, PoolSlice
from devlet.objects.types.node import Node

__all__ = ["Layout"]


class Layout:
    """The pools of a node. `slices` are those with usable devices, in order."""

    def __init__(self, node: Node, pools: list[Pool], revision: int) -> None:
        self.node = node
        self.pools = pools
        self.revision = revision
        self.slices: list[PoolSlice] = [slice for pool in pools if pool.is_usable for slice in pool.slices]

    @cached_property
    def by_key(self) -> dict[PoolKey, Pool]:
        return {pool.key: pool for pool in self.pools}
