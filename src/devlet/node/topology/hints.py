"""Hints: from which NUMA nodes a request can be met, and how good that would be.

A mask is an int with a bit for each NUMA node. For one resource, None means "no preference" and an empty list "cannot
be met at all"; they are never mixed up.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from devlet.objects.identifiers import ResourceName
from devlet.objects.types.container import Container

__all__ = ["Hint", "Hints", "Mask", "Provider"]

Mask = int


class Hint(Struct, frozen=True, gc=False):
    """`mask` None: any node will do."""

    mask: Mask | None
    preferred: bool


Hints = Mapping[ResourceName, Sequence[Hint] | None]


class Provider(Protocol):
    """Whoever hands out something that is near to a NUMA node, for one pod that is being admitted."""

    def container_hints(self, container: Container) -> Hints: ...

    def pod_hints(self) -> Hints: ...

    async def allocate(self, container: Container, affinity: Mask | None) -> None:
        """NotAllocated or PluginError if it cannot be."""
        ...
