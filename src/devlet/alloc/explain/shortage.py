"""What is short when every request has enough free devices but they cannot be had together: a counter, or a capacity.

What is said holds for every choice of devices: amounts are the least that any choice takes. None means that no single
counter or capacity is to blame, not that there is enough.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from devlet.alloc.amounts import Amount, amounts
from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.explain.standing import Option, Scene, Seen, Standing
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.pools import CounterKey, Pool
from devlet.objects.quantity import Quantity

__all__ = ["CapacityShortage", "CounterShortage", "Options", "left_beside", "short_capacity", "short_counter"]

OTHERS_MAX = 6  # requests beside one, of which every choice is added up

Options = Sequence[tuple[Option, Sequence[Seen]]]  # of one request


@dataclass(frozen=True, slots=True)
class CounterShortage:
    """`is_forced`: there is only one choice of devices. The pool is named if others have such a counter too."""

    name: str
    needed: int
    left: int
    is_forced: bool


@dataclass(frozen=True, slots=True)
class CapacityShortage:
    """What each request needs of a capacity, and what each device has left of it."""

    name: str
    needed: tuple[Quantity, ...]
    left: tuple[tuple[str, Quantity], ...]

    @property
    def total(self) -> Quantity:
        return Quantity(sum(each.nano for each in self.needed), self.needed[0].format)


# Counters


def short_counter(scene: Scene, requests: Sequence[Options]) -> CounterShortage | None:
    """The counter of which every choice of devices for the requests takes more than is left."""
    free = _free(requests)
    standing = Standing(scene.allocator)
    numbers = [min(scene.number(option, seen) for option, seen in options) for options in requests]
    pools = {id(each.pool): each.pool for each in free.values()}.values()
    keys = [(pool, key, left) for pool in pools for key, left in pool.available().items()]
    for pool, key, left in keys:
        needed = max(
            _one_by_one(scene, standing, requests, pool, key), _at_once(standing, requests, sum(numbers), pool, key)
        )
        if needed > left:
            several = sum(other == key for _, other, _ in keys) > 1
            name = f"{key[0]}/{key[1]}" + (f" in pool {pool.name}" if several else "")
            is_forced = len(free) == sum(numbers) and all(len(options) == 1 for options in requests)
            return CounterShortage(name, needed, left, is_forced)
    return None


def _free(requests: Sequence[Options]) -> dict[DeviceEntry, Seen]:
    every = (each for options in requests for _, seen in options for each in seen)
    return {each.entry: each for each in every if each.kind is VerdictKind.FREE}


def _one_by_one(
    scene: Scene, standing: Standing, requests: Sequence[Options], pool: Pool, key: CounterKey
) -> int:
    """The least if each request takes the devices that cost it least. Shared devices take from counters only once."""
    if any(entry.shareable for entry in _free(requests)) and len(requests) > 1:
        return 0
    return sum(
        min(_cheapest(_costs(standing, [each], pool, key), scene.number(*each)) for each in options)
        for options in requests
    )


def _at_once(standing: Standing, requests: Sequence[Options], number: int, pool: Pool, key: CounterKey) -> int:
    """The least if any device would do for any request. A device can be had twice only with admin access."""
    every = [each for options in requests for each in options]
    if any(option.wanted.admin_access for option, _ in every):
        return 0
    return _cheapest(_costs(standing, every, pool, key), number)


def _costs(standing: Standing, options: Options, pool: Pool, key: CounterKey) -> dict[DeviceEntry, int]:
    return {
        each.entry: standing.taken(option.wanted, each.entry)[key] if each.pool is pool else 0
        for option, seen in options
        for each in seen
        if each.kind is VerdictKind.FREE
    }


def _cheapest(costs: dict[DeviceEntry, int], number: int) -> int:
    """A shared device may do for all."""
    least = sum(sorted(costs.values())[:number])
    return min([least, *(cost for entry, cost in costs.items() if entry.shareable)])


# Capacity


def short_capacity(scene: Scene, requests: Sequence[Options]) -> CapacityShortage | None:
    """The capacity of which shared devices have too little left, if nothing else can be the reason."""
    free = _free(requests)
    if any(not entry.shareable or entry.counters for entry in free) or not scene.allocator.features.consumable_capacity:
        return None
    if any(len(options) != 1 or options[0][0].wanted.admin_access for options in requests):
        return None
    wanted = [options[0] for options in requests]
    names = {name: None for entry in free for name in entry.device.capacity}
    found = [each for name in names if (each := _contended(scene, wanted, list(free), name))]
    return found[0] if len(found) == 1 else None


def _contended(
    scene: Scene, wanted: Options, free: Sequence[DeviceEntry], name: str
) -> CapacityShortage | None:
    """Whether requests can be in each other's way. On different devices they may need different amounts: then the least."""
    needs: list[Quantity] = []
    for option, seen in wanted:
        entries = [each.entry for each in seen if each.kind is VerdictKind.FREE]
        each = [amount.consumed for entry in entries if (amount := amount_of(scene, option, entry, name))]
        if len(each) < len(entries):
            return None
        needs += [min(each, key=lambda quantity: quantity.nano)] * scene.number(option, seen)
    if not needs:
        return None
    left = [(entry.identity.device, left_of(entry, amount_of(scene, wanted[0][0], entry, name))) for entry in free]
    return None
