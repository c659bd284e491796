"""Topology hints for a request of devices: the combinations of NUMA nodes that can satisfy it.

Whether a hint is preferred is measured against an idle machine: all known devices count, even unhealthy and taken ones.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

from devlet.node.topology import masks
from devlet.node.topology.hints import Hint, Mask
from devlet.objects.identifiers import DeviceID
from devlet.plugins.devices import Device

__all__ = ["EXHAUSTIVE", "for_request", "generate"]

Devices = Mapping[DeviceID, Device]

# Up to this many nodes with devices, there is a hint for each combination. With more there would be millions, so there
# are hints only for single nodes, for pairs, and for all nodes together.
EXHAUSTIVE = 16


def for_request(
    devices: Devices,
    available: Collection[DeviceID],
    reusable: Collection[DeviceID],
    recorded: Collection[DeviceID] | None,
    request: int,
    nodes: Sequence[int],
) -> tuple[Hint, ...] | None:
    """Return the hints for one resource of a container, or of a whole pod (where nothing is reusable). None means no
    preference; empty means that the request cannot be satisfied. `recorded` are the devices that the container or pod
    already has; their number must equal the request. `nodes` are the machine's."""
    if not any(device.nodes for device in devices.values()):
        return None
    if recorded:
        return generate(devices, recorded, (), request, nodes) if len(recorded) == request else ()
    if len(available) + len(reusable) < request:
        return ()
    return generate(devices, available, reusable, request, nodes)


def generate(
    devices: Devices,
    available: Collection[DeviceID],
    reusable: Collection[DeviceID],
    request: int,
    nodes: Sequence[int],
) -> tuple[Hint, ...]:
    """Return a hint for each combination of nodes that has enough devices and includes a node of each reusable one. A
    device that is missing in `devices` has no nodes."""
    machine = masks.bits(nodes)
    known = _counts(devices.values(), machine)
    reused = _counts(_found(devices, reusable), machine)
    free = _counts(_found(devices, set(available).difference(reusable) if reusable else available), machine)
    given = sum(reused.values())
    candidates = masks.nodes(reduce(or_, known, 0)) or tuple(nodes)
    narrowest = len(candidates)
    fitting: list[Mask] = []
    for mask in _combinations(candidates):
        if mask.bit_count() < narrowest and _touching(known, mask) >= request:
            narrowest = mask.bit_count()
        if all(near & mask for near in reused) and given + _touching(free, mask) >= request:
            fitting.append(mask)
    return tuple(Hint(mask, mask.bit_count() == narrowest) for mask in fitting)


def _found(devices: Devices, ids: Iterable[DeviceID]) -> Iterator[Device]:
    return (devices[id] for id in ids if id in devices)


def _counts(devices: Iterable[Device], machine: Mask) -> Counter[Mask]:
    """Count the devices by their nodes. Devices without a node of this machine do not count."""
    counts: Counter[Mask] = Counter()
    for nodes, number in Counter(device.nodes for device in devices).items():
        mask = masks.bits(node for node in nodes if masks.contains(machine, node))
        if mask:
            counts[mask] += number
    return counts


def _combinations(nodes: Sequence[int]) -> Iterator[Mask]:
    return masks.iterate(nodes) if len(nodes) <= EXHAUSTIVE else masks.iterate(nodes, sizes=(1, 2, len(nodes)))


def _touching(counts: Counter[Mask], mask: Mask) -> int:
    return sum([number for near, number in counts.items() if near & mask])
