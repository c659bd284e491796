"""Available devices, divided by their NUMA nodes: aligned with an affinity, not aligned, or without nodes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from devlet.node.topology import masks
from devlet.node.topology.hints import Mask
from devlet.objects.identifiers import DeviceID
from devlet.plugins.devices import Device

__all__ = ["Split", "split"]


class Split(NamedTuple):
    """Every available device is in one of these lists."""

    aligned: list[DeviceID]
    unaligned: list[DeviceID]
    no_affinity: list[DeviceID]


def split(available: Sequence[DeviceID], devices: Mapping[DeviceID, Device], affinity: Mask | None) -> Split:
    """Divide the available devices by the affinity.

    Devices of a node stay together, in the given order. Nodes with fewer devices come first, so that the others stay
    whole. A device of several nodes counts for the first of them, and for nodes in the mask before all others. A device
    that is missing in `devices` has no nodes."""
    if affinity is None:
        return Split([], [], list(available))
    by_node: dict[int, list[DeviceID]] = {}
    without_node = []
    for id in available:
        device = devices.get(id)
        if device is None or not device.nodes:
            without_node.append(id)
        else:
            for node in device.nodes:
                by_node.setdefault(node, []).append(id)
    order = sorted(by_node, key=lambda node: (len(by_node[node]), node))
    aligned = dict.fromkeys(id for node in order if masks.contains(affinity, node) for id in by_node[node])
    others = dict.fromkeys(id for node in order for id in by_node[node] if id not in aligned)
    return Split(list(aligned), list(others), without_node)
