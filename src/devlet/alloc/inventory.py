"""What exists and what is allocated: slices, classes and claims, indexed once and kept up to date.

The inventory precomputes everything that is needed per pod and node: the devices of a slice in order, which of them are
taken (one bit each), what is consumed of shared devices, pools, and selector results. The owner of the inventory
reports changes to it. A slice is never modified, only replaced, so anything cached for it stays valid as long as the
slice exists.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.revisions import Revisions
from devlet.alloc.selectors import SelectorSet, SliceMatch
from devlet.alloc.slice_check import check_amounts
from devlet.errors import InvalidInput
from devlet.objects.identifiers import DeviceIdentity, DriverName, NodeName, PoolName
from devlet.objects.types.claim import DeviceResult, ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.slice import Device, ResourceSlice
from devlet.objects.values.quantity import Quantity

__all__ = ["DeviceEntry", "Holder", "Inventory", "SliceEntry"]

PoolKey = tuple[DriverName, PoolName]
Counters = tuple[tuple[tuple[str, str], int], ...]
Values = frozenset[tuple[str, object]]
K = TypeVar("K")

PARTS_MAX: Final = 64  # a pool of more slices is assumed to be for all nodes


class DeviceEntry:
    """A device as the search sees it. `consumed` is what claims hold of it; None if no share with known amounts
    exists."""

    __slots__ = (
        "attributes",
        "bit",
        "consumed",
        "counters",
        "device",
        "identity",
        "input",
        "is_simple",
        "shareable",
        "shares",
        "slice",
    )

    def __init__(self, slice: "SliceEntry", bit: int, device: Device, identity: DeviceIdentity) -> None:
        self.slice = slice
        self.bit = bit
        self.device = device
        self.identity = identity
        self.shareable = bool(device.allow_multiple_allocations)
        self.counters = _counters(device)
        # the device's own capacity matters only if a request asks for it
        self.is_simple = not self.shareable and _is_simple(device)
        self.consumed: dict[str, int] | None = None
        self.shares = 0
        self.attributes: dict[tuple[str, bool], Values | None] = {}
        self.input = DeviceInput(identity.driver, device)

    @property
    def is_taken(self) -> bool:
        """Return whether a claim has the device exclusively."""
        return bool(self.slice.taken >> self.bit & 1)

    @property
    def is_allocated(self) -> bool:
        """Return whether any claim has the device, exclusively or as a share."""
        return self.is_taken or self.shares > 0 or self.consumed is not None

    def __repr__(self) -> str:
        return f"DeviceEntry({self.identity})"


def _counters(device: Device) -> Counters:
    return tuple(
        ((consumption.counter_set, name), Quantity.parse(counter.value).nano)
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
    )


class SliceEntry:
    """A slice with its devices. `taken` has a bit for each device that a claim has exclusively.

    `leftovers` has a bit for each device that is no longer shared but of which claims still hold shares.
    """

    __slots__ = ("_is_plain", "bindings", "devices", "leftovers", "matches", "slice", "tainted", "taken")

    def __init__(self, slice: ResourceSlice) -> None:
        check_amounts(slice)
        self.slice = slice
        self.devices = tuple(
            DeviceEntry(self, bit, device, slice.identity(device)) for bit, device in enumerate(slice.spec.devices)
        )
        self.taken = 0
        self.leftovers = 0
        self.tainted = _bits(bool(device.taints) for device in slice.spec.devices)
        self.bindings = _bits(bool(device.binding_conditions) for device in slice.spec.devices)
        self._is_plain = not self.tainted and all(entry.is_simple and not entry.counters for entry in self.devices)
        self.matches: dict[SelectorSet, SliceMatch] = {}

    @property
    def is_plain(self) -> bool:
        """Return whether its devices are either free or not, with nothing else to check."""
        return self._is_plain and not self.leftovers

    @property
    def pool(self) -> PoolKey:
        return (self.slice.spec.driver, self.slice.spec.pool.name)

    @property
    def name(self) -> str:
        return self.slice.metadata.name

    @property
    def is_local(self) -> bool:
        """Return whether the slice is for a single node. Counters serve all nodes with devices of the pool."""
        return bool(self.slice.spec.node_name) and not self.slice.spec.shared_counters

    @property
    def generation(self) -> int:
        return self.slice.spec.pool.generation

    @property
    def count(self) -> int:
        return self.slice.spec.pool.resource_slice_count

    def chosen(self, mask: int) -> list[DeviceEntry]:
        """Return the devices whose bits are set, in order."""
        devices = self.devices
        if mask == (1 << len(devices)) - 1:
            return list(devices)
        entries = []
        while mask:
            low = mask & -mask
            entries.append(devices[low.bit_length() - 1])
            mask ^= low
        return entries


def _is_simple(device: Device) -> bool:
    return not any(c.request_policy or Quantity.parse(c.value).sign < 0 for c in device.capacity.values())


def _bits(flags: Iterable[bool]) -> int:
    return sum(flag << bit for bit, flag in enumerate(flags))


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that has a device, or a share of it."""

    namespace: str
    claim: str
    result: DeviceResult


@dataclass(slots=True)
class _Held:
    """What claims have of one device. There should be one exclusive holder; the list can represent a conflict of
    two."""

    exclusive: list[Holder] = field(default_factory=list)
    shares: list[Holder] = field(default_factory=list)


class Inventory:
    """Slices, classes and claims.

    `revisions` are those of slices. `releases` counts claims that gave up their devices. Both tell callers when a
    derived value is out of date.
    """

    def __init__(self, slices: Iterable[ResourceSlice] = (), classes: Iterable[DeviceClass] = ()) -> None:
        self._slices: dict[str, SliceEntry] = {}
        self._local: dict[NodeName, dict[str, SliceEntry]] = {}
        self._shared: dict[str, SliceEntry] = {}
        self._pools: dict[PoolKey, dict[str, SliceEntry]] = {}
        self._where: dict[DeviceIdentity, list[DeviceEntry]] = {}
        self._classes: dict[str, DeviceClass] = {}
        self._held: dict[DeviceIdentity, _Held] = {}
        self._claims: dict[tuple[str, str], Sequence[DeviceResult]] = {}
        self._ticks = 0
        self.revisions = Revisions()
        self.releases = 0
        self.pool_revisions: dict[PoolKey, int] = {}
        for slice in slices:
            self.put_slice(slice)
        for device_class in classes:
            self.put_class(device_class)

    # Slices

    def put_slice(self, slice: ResourceSlice) -> None:
        """Add a slice, or replace the slice of that name. If it raises InvalidInput, nothing has changed."""
        entry = SliceEntry(slice)
        self.remove_slice(slice.metadata.name)
        name, spec = entry.name, slice.spec
        self._slices[name] = entry
        if entry.is_local and spec.node_name:
            self._local.setdefault(spec.node_name, {})[name] = entry
        else:
            self._shared[name] = entry
        self._pools.setdefault(entry.pool, {})[name] = entry
        for device in entry.devices:
            self._where.setdefault(device.identity, []).append(device)
            if held := self._held.get(device.identity):
                _apply(device, held)
        self._changed(entry)

    def remove_slice(self, name: str) -> None:
        entry = self._slices.pop(name, None)
        if entry is None:
            return
        node = entry.slice.spec.node_name
        if node and name in self._local.get(node, {}):
            _discard(self._local, node, name)
        self._shared.pop(name, None)
        _discard(self._pools, entry.pool, name)
        for device in entry.devices:
            entries = self._where[device.identity]
            entries.remove(device)
            if not entries:
                del self._where[device.identity]
        self._changed(entry)
        if entry.pool not in self._pools:
            del self.pool_revisions[entry.pool]

    def _changed(self, entry: SliceEntry) -> None:
        """Note a change for all nodes that have a part of the pool, because they share its completeness."""
        self._touch(entry.pool)
        parts = (entry, *self.slices_of(entry.pool))
        is_local = len(parts) <= PARTS_MAX and all(part.is_local for part in parts)
        self.revisions.changed({NodeName(part.slice.spec.node_name or "") for part in parts} if is_local else None)

    def _touch(self, pool: PoolKey) -> None:
        self._ticks += 1
        self.pool_revisions[pool] = self._ticks

    def slices(self) -> Iterator[SliceEntry]:
        return iter(self._slices.values())

    def slices_for(self, node: NodeName) -> Iterator[SliceEntry]:
        """Yield the slices of the node, then the slices that are not for a single node."""
        yield from self._local.get(node, {}).values()
        yield from self._shared.values()

    def slices_of(self, pool: PoolKey) -> Iterable[SliceEntry]:
        return self._pools.get(pool, {}).values()

    def find(self, identity: DeviceIdentity) -> list[DeviceEntry]:
        """Return the entries of a device: usually one, or more while a pool is being replaced."""
        return self._where.get(identity, [])

    # Classes

    def put_class(self, device_class: DeviceClass) -> None:
        self._classes[device_class.name] = device_class

    def remove_class(self, name: str) -> None:
        self._classes.pop(name, None)

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        return self._classes

    # Claims

    def hold(self, claim: ResourceClaim) -> None:
        """Record what a claim holds, replacing an earlier record of the claim.

        If an amount cannot be parsed, InvalidInput is raised and nothing has changed.
        """
        self.hold_devices(claim.metadata.namespace, claim.metadata.name, claim.results)

    def hold_devices(self, namespace: str, name: str, results: Sequence[DeviceResult]) -> None:
        """Record devices before they are written into the claim."""
        _check_consumed(namespace, name, results)
        self.release(namespace, name)
        if not results:
            return
        self._claims[namespace, name] = results
        for result in results:
            if not result.admin_access:
                identity = result.identity
                held = self._held.setdefault(identity, _Held())
                (held.shares if result.share_id else held.exclusive).append(Holder(namespace, name, result))
                self._refresh(identity)

    def release(self, namespace: str, name: str) -> None:
        """Forget what a claim holds."""
        results = self._claims.pop((namespace, name), ())
        self.releases += bool(results)
        for result in results:
            if held := self._held.get(result.identity):
                held.exclusive = [h for h in held.exclusive if (h.namespace, h.claim) != (namespace, name)]
                held.shares = [h for h in held.shares if (h.namespace, h.claim) != (namespace, name)]
                if not held.exclusive and not held.shares:
                    del self._held[result.identity]
                self._refresh(result.identity)

    def has(self, namespace: str, claim: str) -> bool:
        """Return whether it is known what the claim holds."""
        return (namespace, claim) in self._claims

    def holders(self, identity: DeviceIdentity) -> tuple[Holder, ...]:
        """Return the claims that have the device or a share of it, except those with admin access."""
        held = self._held.get(identity)
        return (*held.exclusive, *held.shares) if held else ()

    def _refresh(self, identity: DeviceIdentity) -> None:
        held = self._held.get(identity) or _Held()
        for entry in self.find(identity):
            leftovers = entry.slice.leftovers
            _apply(entry, held)
            if entry.slice.leftovers != leftovers:
                self._changed(entry.slice)
            elif entry.counters:
                self._touch(entry.slice.pool)


def _discard(index: dict[K, dict[str, SliceEntry]], key: K, name: str) -> None:
    names = index[key]
    del names[name]
    if not names:
        del index[key]


def _check_consumed(namespace: str, claim: str, results: Sequence[DeviceResult]) -> None:
    for result in results:
        for name, amount in result.consumed_capacity.items():
            try:
                Quantity.parse(amount)
            except InvalidInput as e:
                where = f"claim {namespace}/{claim}, device {result.identity}, consumed capacity {name}"
                raise InvalidInput(f"{where}: {amount!r} is not a quantity: {e}") from e


def _apply(entry: DeviceEntry, held: _Held) -> None:
    bit = 1 << entry.bit
    entry.slice.taken = entry.slice.taken | bit if held.exclusive else entry.slice.taken & ~bit
    if not entry.shareable:
        entry.slice.leftovers = entry.slice.leftovers | bit if held.shares else entry.slice.leftovers & ~bit
    entry.shares = len(held.shares)
    consumed: dict[str, int] | None = None
    for holder in held.shares:
        if holder.result.consumed_capacity:
            consumed = consumed if consumed is not None else {}
            for name, amount in holder.result.consumed_capacity.items():
                consumed[name] = consumed.get(name, 0) + Quantity.parse(amount).nano
    entry.consumed = consumed
