"""The choice of a container's devices. Pure and deterministic: the same state gives the same devices.

Devices that an init container of the pod no longer uses come first, then those on the NUMA nodes of the pod's affinity,
then others. If there is a choice and the plugin has preferences, `choose` returns what to ask it, and is called again
with the answer and the state of that moment, because time has passed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import filterfalse, islice
from typing import NamedTuple

from msgspec import Struct

from devlet.errors import NotAllocated
from devlet.node.topology import masks
from devlet.node.topology.hints import Mask
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.devices import Device

__all__ = ["Ask", "Split", "Want", "choose", "split", "still_allocated"]


class Want(Struct, frozen=True):
    """A request and the present state. `healthy` and `reusable` are in the order in which devices are taken."""

    resource: ResourceName
    count: int
    devices: Mapping[DeviceID, Device]
    healthy: Sequence[DeviceID]
    taken: Collection[DeviceID]
    reusable: Sequence[DeviceID] = ()
    affinity: Mask | None = None
    prefers: bool = False  # the plugin has preferences
    skip: int = 0  # this many of the first healthy devices are known to be taken


class Ask(Struct, frozen=True):
    """A question for the plugin: which `size` of the available devices it prefers, including the mandatory ones."""

    available: tuple[DeviceID, ...]
    must_include: tuple[DeviceID, ...]
    size: int


def still_allocated(
    resource: ResourceName, prior: Collection[DeviceID], count: int, healthy: Collection[DeviceID], owner: str
) -> None:
    """Raise NotAllocated unless the container has as many devices as it requests, and all are healthy. `owner` names
    the pod and the container."""
    if len(prior) != count:
        raise NotAllocated(f'{owner} changed request for resource "{resource}" from {len(prior)} to {count}')
    check_healthy(resource, healthy)
    if not set(healthy).issuperset(prior):
        raise NotAllocated(
            f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
        )


def check_healthy(resource: ResourceName, healthy: Collection[DeviceID]) -> None:
    if not healthy:
        raise NotAllocated(f"no healthy devices present; cannot allocate unhealthy devices {resource}")


def choose(want: Want, preferred: Sequence[DeviceID] | None = None) -> tuple[DeviceID, ...] | Ask:
    """Return the devices, or what to ask the plugin first. Raise NotAllocated if there are too few devices."""
    check_healthy(want.resource, want.healthy)
    chosen = _reused(want)
    needed = want.count - len(chosen)
    if not needed:
        return tuple(chosen)
    free = filterfalse(want.taken.__contains__, want.healthy[want.skip :])  # there may be thousands
    if want.affinity is None and not want.prefers:
        available = list(islice(free, min(needed, len(want.healthy))))
    else:
        available = list(free)
    if len(available) < needed:
        raise NotAllocated(
            f"requested number of devices unavailable for {want.resource}."
            f" Requested: {needed}, Available: {len(available)}"
        )
    aligned, unaligned, without_node = split(available, want.devices, want.affinity)
    if needed < len(aligned):
        pool, order = aligned, [aligned]
    else:
        chosen += aligned
        needed -= len(aligned)
        if not needed:
            return tuple(chosen)
        pool, order = available, [unaligned, without_node]
    if preferred is None and want.prefers:
        return Ask(tuple(dict.fromkeys([*pool, *chosen])), tuple(chosen), want.count)
    return tuple(_take(chosen, want.count, _known(preferred or (), pool), *order))


def _reused(want: Want) -> list[DeviceID]:
    if not want.reusable:
        return []
    healthy = set(want.healthy)
    return [device for device in want.reusable if device in healthy][: want.count]


def _known(preferred: Sequence[DeviceID], offered: Collection[DeviceID]) -> list[DeviceID]:
    if not preferred:
        return []
    among = set(offered)
    return [device for device in preferred if device in among]


def _take(chosen: list[DeviceID], count: int, *sources: Iterable[DeviceID]) -> list[DeviceID]:
    taken = dict.fromkeys(chosen)
    for source in sources:
        for device in source:
            if len(taken) == count:
                return list(taken)
            taken[device] = None
    return list(taken)


class Split(NamedTuple):
    """The available devices, divided by an affinity. Every device is in one of these lists."""

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
