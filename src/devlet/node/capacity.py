"""What a node has and what can be allocated on it, from the machine, the device plugins and its own Node object. Pure.

Extended resources that other writers put on the Node stay there. A resource whose plugin is gone for good stays with 0,
which distinguishes it from a resource that no node ever had.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from devlet.objects import names
from devlet.objects.identifiers import ResourceName
from devlet.objects.types.meta import QuantityText

__all__ = ["PluginCapacity", "Resources", "of_node", "reset"]

Texts = Mapping[str, QuantityText]


class PluginCapacity(Protocol):
    """`removed` are resources whose plugins are gone for good."""

    @property
    def capacity(self) -> Mapping[ResourceName, int]: ...

    @property
    def allocatable(self) -> Mapping[ResourceName, int]: ...

    @property
    def removed(self) -> frozenset[ResourceName]: ...


class Resources(Struct, frozen=True):
    capacity: dict[str, QuantityText]
    allocatable: dict[str, QuantityText]


def of_node(before: Texts, machine: Texts, plugins: PluginCapacity) -> Resources:
    """Return the resources of the node. `before` is the capacity on the Node object. Resources that plugins list but
    cannot allocate now have allocatable 0."""
    capacity = {**before, **machine}
    capacity.update((name, "0") for name in plugins.removed)
    capacity.update((name, str(number)) for name, number in plugins.capacity.items())
    usable = {str(name): str(plugins.allocatable.get(name, 0)) for name in plugins.capacity}
    return Resources(capacity, {**capacity, **usable})


def reset(before: Texts) -> dict[str, QuantityText]:
    """Return the first capacity of a node whose root is new: the extended resources of its predecessor are 0."""
    return {name: "0" if _is_extended(name) else amount for name, amount in before.items()}


def _is_extended(name: str) -> bool:
    return not names.extended_resource_name(name)
