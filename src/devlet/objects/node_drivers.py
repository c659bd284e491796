"""The annotation in which devlet lists a node's DRA drivers: those that can be called, and those that are gone.

    devlet.dev/drivers: [{"name":"gpu.example.com","goneSince":"2026-05-01T12:00:00Z"},
                         {"name":"nic.example.com","registeredSince":"2026-05-01T11:58:12Z"}]

A driver's slices stay for a while after the driver is gone, because it may only be restarting. New pods are not placed
on its devices in the meantime. A kubelet writes no such annotation, so nothing is known about its drivers.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from devlet.objects.identifiers import DriverName
from devlet.objects.types.node import Node
from devlet.objects.types.slice import ResourceSlice

__all__ = ["ANNOTATION", "NodeDriver", "decode", "encode", "gone_drivers", "is_of_gone_driver"]

ANNOTATION: Final = "devlet.dev/drivers"
MAX_TEXT: Final = 64 << 10  # longer values are ignored


class NodeDriver(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A driver, and when it was registered or went away; exactly one of the times is set."""

    name: DriverName
    registered_since: str | None = None
    gone_since: str | None = None


def encode(drivers: Iterable[NodeDriver]) -> str:
    """Return the annotation's value, the same for the same drivers in any order."""
    return msgspec.json.encode(sorted(drivers, key=lambda each: each.name)).decode()


@lru_cache(4096)
def decode(text: str) -> tuple[NodeDriver, ...]:
    """Parse the annotation. An invalid value counts as a missing annotation, because anyone may annotate a node."""
    if len(text) > MAX_TEXT:
        return ()
    try:
        return msgspec.json.decode(text, type=tuple[NodeDriver, ...])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ()


def gone_drivers(node: Node | None) -> frozenset[DriverName]:
    """Return the drivers that were connected on the node and are not now, whether or not they are still registered."""
    text = node.metadata.annotations.get(ANNOTATION, "") if node else ""
    return _gone(text) if text else frozenset()


@lru_cache(4096)
def _gone(text: str) -> frozenset[DriverName]:
    return frozenset(each.name for each in decode(text) if each.gone_since)


def is_of_gone_driver(slice_: ResourceSlice, node: Node | None) -> bool:
    """Return True if the slice's devices are on the node alone and their driver is gone from it."""
    return node is not None and slice_.spec.node_name == node.name and slice_.spec.driver in gone_drivers(node)
