"""The counter or capacity that is overdrawn if each request has enough free devices, but not all of them together.

A reported overdraft holds for every choice of devices: amounts are the least that any choice takes. None means that no
single counter or capacity is the reason, not that there is enough.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from devlet.alloc.amounts import Amount, amounts
from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.explain.standing import Option, Scene, Seen, Standing
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.pools import CounterKey, Pool
from devlet.objects.types.slice import CapacityRequestPolicy
from devlet.objects.values.quantity import Quantity

__all__ = ["CapacityOverdraft", "CounterOverdraft", "Options", "capacity_overdraft", "counter_overdraft", "left_beside"]

OTHERS_MAX = 6  # for each other request up to this number, every choice is added up
DEVICES_MAX = 64  # devices that amounts are proposed for

Options = Sequence[tuple[Option, Sequence[Seen]]]  # options of one request


@dataclass(frozen=True, slots=True)
class CounterOverdraft:
    """A counter that is overdrawn. `is_forced` says that there is only one choice of devices."""

    name: str
    needed: int
    left: int
    is_forced: bool


@dataclass(frozen=True, slots=True)
class CapacityOverdraft:
    """What the requests need of a capacity, device by device, and what each shared device has left of it."""

    name: str
    needed: tuple[Quantity, ...]
    left: tuple[tuple[str, Quantity], ...]

    @property
    def total(self) -> Quantity:
        return _sum(self.needed)

    @property
    def total_left(self) -> Quantity:
        return _sum([left for _, left in self.left])


def _sum(quantities: Sequence[Quantity]) -> Quantity:
    return Quantity(sum(each.nano for each in quantities), quantities[0].format)


def _free(requests: Sequence[Options]) -> dict[DeviceEntry, Seen]:
    every = (each for options in requests for _, seen in options for each in seen)
    return {each.entry: each for each in every if each.kind is VerdictKind.FREE}


# Counters


def counter_overdraft(scene: Scene, requests: Sequence[Options]) -> CounterOverdraft | None:
    """Return the counter of which every choice of devices takes more than is left."""
    free = _free(requests)
    number = sum(min(scene.number(*each) for each in options) for options in requests)
    pools = {id(each.pool): each.pool for each in free.values()}
    keys = dict.fromkeys((id(each.pool), key) for each in free.values() for key, _ in each.entry.counters)
    for pool, key in keys:
        left = pools[pool].available().get(key, 0)
        costs = _Costs(scene, pools[pool], key)
        needed = max(costs.one_by_one(requests), costs.at_once(requests, number))
        if needed > left:
            is_several = sum(other == key for _, other in keys) > 1
            name = f"{key[0]}/{key[1]}" + f" in pool {pools[pool].name}" * is_several
            is_forced = len(free) == number and all(len(options) == 1 for options in requests)
            return CounterOverdraft(name, needed, left, is_forced)
    return None


class _Costs:
    """What free devices take from one counter."""

    def __init__(self, scene: Scene, pool: Pool, key: CounterKey) -> None:
        self._scene = scene
        self._standing = Standing(scene.allocator)
        self._pool = pool
        self._key = key

    def one_by_one(self, requests: Sequence[Options]) -> int:
        """Return the total if each request takes its cheapest devices, whatever the others take."""
        if len(requests) > 1 and any(entry.shareable for entry in _free(requests)):
            return 0  # a shared device takes from counters only once
        return sum(min(self._alone(*each) for each in options) for options in requests)

    def _alone(self, option: Option, seen: Sequence[Seen]) -> int:
        """Return the least that one request takes. Its devices differ, even if they can be shared."""
        return sum(sorted(self._of([(option, seen)]).values())[: self._scene.number(option, seen)])

    def at_once(self, requests: Sequence[Options], number: int) -> int:
        """Return the least that all requests take together, if every device suits every request except possibly one."""
        every = [each for options in requests for each in options]
        if any(option.wanted.admin_access for option, _ in every):
            return 0  # with such a request, a device may be counted twice
        costs = self._of(every)
        shared = (cost for entry, cost in costs.items() if entry.shareable)  # one device may serve all requests
        return min([sum(sorted(costs.values())[:number]), *shared])

    def _of(self, options: Options) -> dict[DeviceEntry, int]:
        return {
            each.entry: self._standing.taken(option.wanted, each.entry)[self._key] if each.pool is self._pool else 0
            for option, seen in options
            for each in seen
            if each.kind is VerdictKind.FREE
        }


# Capacity


def capacity_overdraft(scene: Scene, requests: Sequence[Options]) -> CapacityOverdraft | None:
    """Return the capacity that is exhausted on shared devices, if nothing else can be the reason."""
    free = list(_free(requests))
    if not scene.allocator.features.consumable_capacity or not all(entry.shareable for entry in free):
        return None
    if len(free) > 1 and any(entry.counters for entry in free):
        return None
    if any(len(options) != 1 or options[0][0].wanted.admin_access for options in requests):
        return None
    wanted = [(options[0], frozenset(_free([options]))) for options in requests]
    names = dict.fromkeys(name for entry in free for name in entry.device.capacity)
    at = [(entry, [option for (option, _), theirs in wanted if entry in theirs]) for entry in free]
    scarce = [name for name in names if any(_is_scarce(scene, options, entry, name) for entry, options in at)]
    return _overdraft(scene, [each for each, _ in wanted], scarce[0]) if len(scarce) == 1 else None


def _is_scarce(scene: Scene, options: Sequence[Option], entry: DeviceEntry, name: str) -> bool:
    """Return whether the device lacks capacity for all requests that could use it."""
    found = [amount for option in options if (amount := _amount(scene, option, entry, name))]
    return bool(found) and sum(amount.consumed.nano for amount in found) > _left(entry, found[0])


def _overdraft(scene: Scene, wanted: Options, name: str) -> CapacityOverdraft:
    needed: list[Quantity] = []
    left: dict[DeviceEntry, Quantity] = {}
    for option, seen in wanted:
        found = {entry: a for entry in _free([[(option, seen)]]) if (a := _amount(scene, option, entry, name))}
        if found:
            least = min((amount.consumed for amount in found.values()), key=lambda each: each.nano)
            needed += [least] * scene.number(option, seen)
        left |= {entry: Quantity(_left(entry, amount), amount.consumed.format) for entry, amount in found.items()}
    return CapacityOverdraft(name, tuple(needed), tuple((e.identity.device, amount) for e, amount in left.items()))


def _amount(scene: Scene, option: Option, entry: DeviceEntry, name: str) -> Amount | None:
    """Return what one share of the device takes, if the device is free for the request."""
    strict = scene.allocator.rules.strict_capacity
    found = amounts(entry.device, dict(option.wanted.capacity), entry.identity.driver, strict=strict)
    assert not isinstance(found, str), f"device {entry.identity} is free"
    return next((each for each in found if each.name == name), None)


def _left(entry: DeviceEntry, amount: Amount) -> int:
    return amount.limit - (entry.consumed or {}).get(amount.name, 0)


def left_beside(scene: Scene, option: Option, seen: Sequence[Seen]) -> Iterator[tuple[str, int]]:
    """Yield amounts that the request could get of shared devices beside some of the other requests, if that is less
    than it takes now."""
    if not scene.allocator.features.consumable_capacity:
        return
    requests = [options for key, options in scene.seen.items() if key != (option.claim, option.request)]
    others = [(other, _free([[(other, theirs)]])) for options in requests for other, theirs in options]
    shared = (entry for entry in _free([[(option, seen)]]) if entry.shareable)
    for entry in islice(shared, DEVICES_MAX):
        for name, capacity in entry.device.capacity.items():
            own = _amount(scene, option, entry, name)
            beside = [a for other, free in others if entry in free and (a := _amount(scene, other, entry, name))]
            for taken in _sums([amount.consumed.nano for amount in beside[:OTHERS_MAX]]):
                if own and 0 < (less := _allowed(capacity.request_policy, _left(entry, own) - taken)):
                    if less < own.consumed.nano:
                        yield name, less


def _sums(amounts: Sequence[int]) -> set[int]:
    return {sum(some) for count in range(1, len(amounts) + 1) for some in combinations(amounts, count)}


def _allowed(policy: CapacityRequestPolicy | None, most: int) -> int:
    """Return the largest amount up to `most` that a policy does not round; 0 if there is none."""
    if policy and policy.valid_values:
        values = (Quantity.parse(value).nano for value in policy.valid_values)
        return max((value for value in values if value <= most), default=0)
    valid = policy.valid_range if policy else None
    if valid is None or valid.min is None:
        return most
    least = Quantity.parse(valid.min).nano
    step = Quantity.parse(valid.step).nano if valid.step is not None else 1
    return most - (most - least) % step if most >= least else 0
