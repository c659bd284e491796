"""Available devices, sorted by how near they are to where they are wanted."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from devlet.node.topology import masks
from devlet.node.topology.hints import Mask
from devlet.objects.identifiers import DeviceID
from devlet.plugins.devices import Device

__all__ = ["Split", "split"]


class Split(NamedTuple):
    """Every available device is in one of them."""

    aligned: list[DeviceID]
    unaligned: list[DeviceID]
    no_affinity: list[DeviceID]


def split(available: Sequence[DeviceID], devices: Mapping[DeviceID, Device], affinity: Mask | None) -> Split:
    """Devices of a node stay together, in the order in which they are given; nodes with fewer of them come first, so
    that the others stay whole. One that is near to several nodes counts for the first of them, and for those in the
    mask before any other. One that is not in `devices` is near to none."""
    if affinity is None:
        return Split([], [], list(available))
    nearby: dict[int, list[DeviceID]] = {}
    indifferent = []
    for id in available:
        device = devices.get(id)
        if device is None or not device.nodes:
            indifferent.append(id)
        else:
            for node in device.nodes:
                nearby.setdefault(node, []).append(id)
    order = sorted(nearby, key=lambda node: (len(nearby[node]), node))
    aligned = dict.fromkeys(id for node in order if masks.contains(affinity, node) for id in nearby[node])
    others = dict.fromkeys(id for node in order for id in nearby[node] if id not in aligned)
    return Split(list(aligned), list(others), indifferent)
