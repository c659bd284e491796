"""What an allocation problem offers to a node, and what is taken already: for the checker, apart from the allocator.

A pool counts with the slices of its newest generation only, and only if all of them are there. Devices for other nodes
are never given away, but those that are allocated use up the pool's counters all the same.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from devlet.objects.documents import Document
from devlet.objects.selectors import nodes as node_selectors
from devlet.objects.values.quantity import ZERO, Quantity

__all__ = ["DeviceKey", "Holdings", "Offer", "Pool", "PoolKey", "counters_of", "holdings", "pools"]

Counters = dict[str, dict[str, Quantity]]
"""By set and name."""


class PoolKey(NamedTuple):
    driver: str
    pool: str


class DeviceKey(NamedTuple):
    driver: str
    pool: str
    device: str


@dataclass(frozen=True)
class Offer:
    """A device that a slice for the node has."""

    pool: PoolKey
    device: Document
    slice: Document
    reaches_node: bool

    @property
    def key(self) -> DeviceKey:
        return DeviceKey(*self.pool, self.device["name"])

    @property
    def place(self) -> Document:
        """The document that says for which nodes it is: the device or its slice."""
        return self.device if self.slice.get("perDeviceNodeSelection") else self.slice


@dataclass(frozen=True)
class Pool:
    """`broken` says why nothing may be given from it. `devices` are those of all nodes, also of other generations if
    it is broken."""

    key: PoolKey
    offers: tuple[Offer, ...] = ()
    devices: tuple[Document, ...] = ()
    counters: Counters = field(default_factory=dict)
    broken: str = ""


@dataclass
class Holdings:
    """What other claims have. Admin access takes nothing away."""

    exclusive: set[DeviceKey] = field(default_factory=set)
    shares: set[DeviceKey] = field(default_factory=set)
    consumed: dict[DeviceKey, dict[str, Quantity]] = field(default_factory=dict)

    def taken(self, key: DeviceKey) -> bool:
        return key in self.exclusive or key in self.shares


def key_of(result: Document) -> DeviceKey:
    return DeviceKey(result["driver"], result["pool"], result["device"])


def holdings(claims: Iterable[Document], *, sharing: bool) -> Holdings:
    """Without `sharing` a share is the whole device."""
    held = Holdings()
    for claim in claims:
        for result in claim["status"]["allocation"]["devices"].get("results") or []:
            if not result.get("adminAccess"):
                _hold(held, result, sharing)
    return held


def _hold(held: Holdings, result: Document, sharing: bool) -> None:
    key = key_of(result)
    if not (sharing and result.get("shareID")):
        held.exclusive.add(key)
        return
    held.shares.add(key)
    total = held.consumed.setdefault(key, {})
    for name, amount in (result.get("consumedCapacity") or {}).items():
        total[name] = total.get(name, ZERO) + Quantity.parse(amount)


def reaches(place: Document, node: Document) -> bool:
    """Whether a slice or a device that says `nodeName`, `allNodes` or `nodeSelector` is for the node."""
    if name := place.get("nodeName"):
        return bool(name == node["metadata"]["name"])
    if place.get("allNodes"):
        return True
    return bool(place.get("nodeSelector")) and node_selectors.parse(place["nodeSelector"]).matches(node)


def pools(slices: Iterable[Document], node: Document, *, partitions: bool, whole_generation: bool) -> list[Pool]:
    """The pools with something for the node.

    With `whole_generation` a newer generation voids the older one even if the newer one is only for other nodes."""
    groups: dict[PoolKey, list[Document]] = {}
    for slice_ in slices:
        spec = slice_["spec"]
        groups.setdefault(PoolKey(spec["driver"], spec["pool"]["name"]), []).append(slice_)
    found = (_pool(key, group, node, partitions, whole_generation) for key, group in sorted(groups.items()))
    return [pool for pool in found if pool]


def _pool(key: PoolKey, group: list[Document], node: Document, partitions: bool, whole: bool) -> Pool | None:
    relevant = [slice_ for slice_ in group if _relevant(slice_["spec"], node, partitions)]
    if not relevant:
        return None
    generation = max(_generation(slice_) for slice_ in relevant)
    mine = [slice_ for slice_ in relevant if _generation(slice_) == generation]
    current = [slice_ for slice_ in group if _generation(slice_) == generation]
    wanted = _in_order(mine)["spec"]["pool"]["resourceSliceCount"]
    newest = max(_generation(slice_) for slice_ in group)
    if newest > generation and (whole or len(mine) != wanted):
        return None
    if wanted not in (len(mine), len(current)):
        return Pool(key, devices=_devices(group), broken="not all its slices are there")
    pool = _built(key, mine, mine if wanted == len(mine) else current, node, partitions)
    return replace(pool, devices=_devices(group)) if pool.broken else pool


def _in_order(slices: list[Document]) -> Document:
    """The slice whose count is believed: those for one node come before the others."""
    local = [s for s in slices if s["spec"].get("nodeName") and not s["spec"].get("sharedCounters")]
    return (local or slices)[0]


def _generation(slice_: Document) -> int:
    return int(slice_["spec"]["pool"].get("generation", 0))


def _relevant(spec: Document, node: Document, partitions: bool) -> bool:
    if not partitions and (spec.get("perDeviceNodeSelection") is not None or spec.get("sharedCounters")):
        return False
    if spec.get("sharedCounters"):
        return True
    if spec.get("perDeviceNodeSelection"):
        return any(reaches(device, node) for device in spec.get("devices") or [])
    return reaches(spec, node)


def _built(key: PoolKey, mine: list[Document], all_: list[Document], node: Document, partitions: bool) -> Pool:
    offers = tuple(_offers(key, mine, node, partitions))
    devices = _devices(all_)
    sets = [set_ for slice_ in mine for set_ in slice_["spec"].get("sharedCounters") or []]
    counters = {set_["name"]: _amounts(set_.get("counters")) for set_ in sets}
    broken = ""
    if len({offer.key for offer in offers}) < len(offers):
        broken = "two devices have the same name"
    elif partitions and len(counters) < len(sets):
        broken = "two counter sets have the same name"
    elif partitions and not all(_known(device, counters) for device in devices):
        broken = "a device uses counters that do not exist"
    return Pool(key, offers, devices, counters, broken)


def _devices(slices: list[Document]) -> tuple[Document, ...]:
    return tuple(device for slice_ in slices for device in slice_["spec"].get("devices") or [])


def _offers(key: PoolKey, slices: list[Document], node: Document, partitions: bool) -> Iterator[Offer]:
    for slice_ in sorted(slices, key=lambda slice_: slice_["metadata"]["name"]):
        spec = slice_["spec"]
        if partitions and spec.get("sharedCounters"):
            continue
        for device in spec.get("devices") or []:
            yield Offer(key, device, spec, not spec.get("perDeviceNodeSelection") or reaches(device, node))


def counters_of(device: Document) -> Counters:
    """What it uses of its pool's counters."""
    used: Counters = {}
    for part in device.get("consumesCounters") or []:
        total = used.setdefault(part["counterSet"], {})
        for name, amount in _amounts(part.get("counters")).items():
            total[name] = total.get(name, ZERO) + amount
    return used


def _amounts(counters: Mapping[str, Document] | None) -> dict[str, Quantity]:
    return {name: Quantity.parse(counter["value"]) for name, counter in (counters or {}).items()}


def _known(device: Document, counters: Counters) -> bool:
    return all(
        set_ in counters and names.keys() <= counters[set_].keys() for set_, names in counters_of(device).items()
    )
