"""Topology hints: the sets of NUMA nodes that can satisfy a request, and which of them are preferred.

A mask is an int with a bit for each NUMA node. For one resource, None means "no preference", and an empty list means
that the request cannot be satisfied.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from devlet.objects.identifiers import ResourceName
from devlet.objects.types.container import Container

__all__ = ["Hint", "Hints", "Mask", "Provider"]

Mask = int


class Hint(Struct, frozen=True, gc=False):
    """`mask` is None if any node will do."""

    mask: Mask | None
    preferred: bool


Hints = Mapping[ResourceName, Sequence[Hint] | None]


class Provider(Protocol):
    """A hint provider for one pod that is being admitted: it allocates resources that belong to NUMA nodes."""

    def container_hints(self, container: Container) -> Hints: ...

    def pod_hints(self) -> Hints: ...

    async def allocate(self, container: Container, affinity: Mask | None) -> None:
        """Raise NotAllocated or PluginError if that is not possible."""
        ...
