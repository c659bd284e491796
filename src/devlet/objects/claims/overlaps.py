"""Claims with overlapping allocations: together they hold more of a device than there is.

A single scheduler never makes such allocations. Two schedulers that do not know of each other may. The rules are those
of allocation:

- A device belongs to one claim, unless every claim has a share of it. Admin access does not count.
- Shares of a device must not exceed its capacity.
- Allocated devices must not take more from a counter of their pool than the counter has.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from devlet.errors import InvalidInput
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.claim import DeviceResult
from devlet.objects.types.slice import Device, ResourceSlice
from devlet.objects.values.quantity import Quantity

__all__ = [
    "ClaimKey",
    "Holding",
    "Ledger",
    "Overlap",
    "holdings_of",
]


class Holding(Struct, frozen=True):
    """A device that a claim holds, or a share of it."""

    device: DeviceIdentity
    share: str | None = None
    admin: bool = False

    def excludes(self, other: "Holding") -> bool:
        """Return True if two claims cannot hold both."""
        if self.device != other.device or self.admin or other.admin:
            return False
        return not (self.share and other.share) or self.share == other.share


def holdings_of(results: Iterable[DeviceResult]) -> Iterator[Holding]:
    """Yield the devices, and shares of devices, that an allocation gives to a claim."""
    for result in results:
        yield Holding(result.identity, result.share_id, bool(result.admin_access))


ClaimKey = tuple[str, str]
"""Namespace and name."""

_PoolKey = tuple[DriverName, PoolName]
_CounterKey = tuple[str, str]  # counter set and counter
_NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}


class Overlap(Struct, frozen=True, order=True):
    """`claims` hold `what`, which is a device or a pool. `lacking` is the capacity or counter that does not suffice; it
    is empty if the claims exclude each other."""

    what: str
    lacking: str
    claims: tuple[ClaimKey, ...]
    device: DeviceIdentity | None = None

    @property
    def text(self) -> str:
        names = _list(self.claims)
        if self.lacking:
            return f"claims {names} together hold more {self.lacking} of {self.what} than it has"
        return f"{self.what} is allocated to {_NUMBERS.get(len(self.claims), len(self.claims))} claims: {names}"

    def others(self, claim: ClaimKey) -> str:
        """Return a phrase that names the other claims."""
        left = [each for each in self.claims if each != claim]
        return f"claim {_list(left)}" if len(left) == 1 else f"claims {_list(left)}"


class _Stake(Struct, frozen=True):
    claim: ClaimKey
    holding: Holding
    consumed: Mapping[str, int]


class _Limits(Struct, frozen=True):
    """The capacity that a device can share, and the amounts that it takes from counters."""

    capacity: Mapping[str, int]
    counters: Mapping[_CounterKey, int]


class _Part(Struct, frozen=True):
    """The limits on the devices of one slice, apart from the rule that a device has one holder."""

    generation: int
    devices: Mapping[DeviceName, _Limits]
    counters: Mapping[_CounterKey, int]


class Ledger:
    """The claims that hold each device. Its owner reports each change of a slice or claim."""

    def __init__(self) -> None:
        self._claims: dict[ClaimKey, tuple[_Stake, ...]] = {}
        self._stakes: dict[DeviceIdentity, tuple[_Stake, ...]] = {}
        self._crowded: set[DeviceIdentity] = set()  # held by more than one claim
        self._pools: dict[_PoolKey, dict[str, _Part]] = {}
        self._places: dict[str, _PoolKey] = {}

    def put_slice(self, slice_: ResourceSlice) -> None:
        """Add or replace a slice. If its amounts cannot be read, it does not limit anything."""
        self.remove_slice(slice_.metadata.name)
        try:
            part = _part(slice_)
        except InvalidInput:
            return
        if part.devices or part.counters:
            pool = self._places[slice_.metadata.name] = (slice_.spec.driver, slice_.spec.pool.name)
            self._pools.setdefault(pool, {})[slice_.metadata.name] = part

    def remove_slice(self, name: str) -> None:
        if (pool := self._places.pop(name, None)) is not None:
            del self._pools[pool][name]
            if not self._pools[pool]:
                del self._pools[pool]

    def hold(self, claim: ClaimKey, results: Iterable[DeviceResult]) -> None:
        """Record what a claim holds, in place of what it held before."""
        self.release(claim)
        stakes = tuple(_stake(claim, result) for result in results if not result.admin_access)
        if not stakes:
            return
        self._claims[claim] = stakes
        for stake in stakes:
            device = stake.holding.device
            others = self._stakes.get(device, ())
            self._stakes[device] = (*others, stake)
            if any(other.claim != claim for other in others):
                self._crowded.add(device)

    def release(self, claim: ClaimKey) -> None:
        for stake in self._claims.pop(claim, ()):
            device = stake.holding.device
            left = tuple(each for each in self._stakes.get(device, ()) if each.claim != claim)
            if left:
                self._stakes[device] = left
            else:
                self._stakes.pop(device, None)
            if device in self._crowded and len({each.claim for each in left}) < 2:
                self._crowded.discard(device)

    def of(self, claim: ClaimKey) -> list[Overlap]:
        """Return the overlaps of a claim with other claims."""
        devices = dict.fromkeys(stake.holding.device for stake in self._claims.get(claim, ()))
        found = [overlap for device in devices if device in self._crowded for overlap in self._of_device(device)]
        if self._pools:
            for pool in dict.fromkeys((device.driver, device.pool) for device in devices):
                found += self._of_pool(pool)
        return [overlap for overlap in found if claim in overlap.claims]

    def all(self) -> list[Overlap]:
        found = [overlap for device in self._crowded for overlap in self._of_device(device)]
        return sorted(found + [overlap for pool in self._pools for overlap in self._of_pool(pool)])

    def _of_device(self, device: DeviceIdentity) -> Iterator[Overlap]:
        stakes, what = self._stakes[device], f"device {device}"
        if any(stake.holding.share is None for stake in stakes):
            yield Overlap(what, "", _claims(stakes), device)
            return
        shares = Counter(stake.holding.share for stake in stakes)
        if len(twice := _claims([stake for stake in stakes if shares[stake.holding.share] > 1])) > 1:
            yield Overlap(what, "", twice, device)
        for name, limit in self._capacity(device).items():
            takers = [stake for stake in stakes if stake.consumed.get(name)]
            if sum(stake.consumed[name] for stake in takers) > limit and len(claims := _claims(takers)) > 1:
                yield Overlap(what, name, claims, device)

    def _of_pool(self, pool: _PoolKey) -> Iterator[Overlap]:
        parts = self._parts(pool)
        left = Counter({key: amount for part in parts for key, amount in part.counters.items()})
        takers: dict[_CounterKey, list[_Stake]] = {key: [] for key in left}
        for part in parts if left else ():
            for name, limits in part.devices.items():
                stakes = self._stakes.get(DeviceIdentity(*pool, name), ())
                for key in limits.counters.keys() & takers.keys() if stakes else ():
                    left[key] -= limits.counters[key]
                    takers[key] += stakes
        for key, amount in left.items():
            if amount < 0 and len(claims := _claims(takers[key])) > 1:
                counter_set, counter = key
                yield Overlap(f"counter set {counter_set} of pool {'/'.join(pool)}", counter, claims)

    def _capacity(self, device: DeviceIdentity) -> Mapping[str, int]:
        for part in self._parts((device.driver, device.pool)):
            if (limits := part.devices.get(device.device)) is not None:
                return limits.capacity
        return {}

    def _parts(self, pool: _PoolKey) -> list[_Part]:
        """Return the parts of the pool that belong to its newest generation."""
        parts = self._pools.get(pool, {}).values()
        newest = max((part.generation for part in parts), default=0)
        return [part for part in parts if part.generation == newest]


def _stake(claim: ClaimKey, result: DeviceResult) -> _Stake:
    """Treat a share whose amounts cannot be read as the whole device, as the allocator does."""
    try:
        consumed = {name: Quantity.parse(amount).nano for name, amount in result.consumed_capacity.items()}
    except InvalidInput:
        return _Stake(claim, Holding(result.identity), {})
    return _Stake(claim, Holding(result.identity, result.share_id or None), consumed)


def _part(slice_: ResourceSlice) -> _Part:
    spec = slice_.spec
    limits = {device.name: _limits_of(device) for device in spec.devices if _is_limited(device)}
    counters = {
        (each.name, name): _nano(it.value) for each in spec.shared_counters for name, it in each.counters.items()
    }
    return _Part(spec.pool.generation, limits, counters)


def _is_limited(device: Device) -> bool:
    return bool(device.allow_multiple_allocations or device.consumes_counters)


def _limits_of(device: Device) -> _Limits:
    capacity = {name: _nano(each.value) for name, each in device.capacity.items()}
    taken = {
        (each.counter_set, name): _nano(it.value)
        for each in device.consumes_counters
        for name, it in each.counters.items()
    }
    return _Limits(capacity if device.allow_multiple_allocations else {}, taken)


def _nano(value: str | int | float) -> int:
    return Quantity.parse(value).nano


def _claims(stakes: Sequence[_Stake]) -> tuple[ClaimKey, ...]:
    return tuple(sorted({stake.claim for stake in stakes}))


def _list(claims: Sequence[ClaimKey]) -> str:
    names = ["/".join(filter(None, claim)) for claim in claims]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
