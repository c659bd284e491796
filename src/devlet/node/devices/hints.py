"""From which NUMA nodes a request for devices can be met, and which of these ways are as narrow as they could be.

"Preferred" is measured against an idle machine: all devices that are known count, also those that are broken or taken.
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

# Up to so many nodes with devices, all their combinations are offered. With more, which would be millions, only single
# nodes, pairs, and all together.
EXHAUSTIVE = 16


def for_request(
    devices: Devices,
    available: Collection[DeviceID],
    reusable: Collection[DeviceID],
    recorded: Collection[DeviceID] | None,
    request: int,
    nodes: Sequence[int],
) -> tuple[Hint, ...] | None:
    """The hints for one resource of a container, or of a whole pod (where nothing is reusable). None: it does not
    matter; empty: it cannot be met. `recorded` is what the container or pod holds already, and then has to be exactly
    the request. `nodes` are those of the machine."""
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
    """One hint for each combination of nodes that has enough; all that is reusable has to be near to it. A device that
    is not in `devices` is near to nothing."""
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
    """How many devices are near to which nodes; those that are near to none of this machine do not count."""
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
