"""Why a request cannot have a device, looking at the request alone. The questions and their order are those of the
search.

Constraints are not examined here, because they are about several devices.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from devlet.alloc.allocator import Allocator, Wanted
from devlet.alloc.amounts import Amount, amounts
from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.layout import Layout
from devlet.alloc.pools import CounterKey, Pool, PoolSlice
from devlet.alloc.requests import Alternative
from devlet.alloc.taints import untolerated
from devlet.errors import InvalidInput

__all__ = ["Option", "Scene", "Seen", "Standing", "evaluate", "look"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A device of the node, with its verdict."""

    pool: Pool
    entry: DeviceEntry
    kind: VerdictKind


@dataclass(frozen=True, slots=True)
class Option:
    """An alternative of a request: indices of claim and request, and what is wanted."""

    claim: int
    request: int
    request_name: str
    wanted: Alternative


@dataclass(slots=True)
class Scene:
    """A node as the requests see it: the devices of the node for each alternative of each request."""

    allocator: Allocator
    layout: Layout
    claims: Wanted
    seen: dict[tuple[int, int], list[tuple[Option, list[Seen]]]]

    def number(self, option: Option, seen: Sequence[Seen]) -> int:
        """Return the number of devices that the option needs."""
        if not option.wanted.is_all:
            return option.wanted.count
        return sum(each.kind in _MATCHING and each.kind is not VerdictKind.CAPACITY for each in seen)


_MATCHING = frozenset(
    (
        VerdictKind.CHOSEN,
        VerdictKind.FREE,
        VerdictKind.IN_USE,
        VerdictKind.TAINT,
        VerdictKind.CAPACITY,
        VerdictKind.COUNTERS,
        VerdictKind.CONSTRAINT,
    )
)


def look(allocator: Allocator, layout: Layout, claims: Wanted, give_up: Callable[[], bool] | None = None) -> Scene:
    """Examine the devices of a node. Raises Interrupted if the evaluation of a selector was given up."""
    evaluate(allocator, [layout], claims, give_up)
    standing = Standing(allocator)
    scene = Scene(allocator, layout, claims, {})
    for i, requests in enumerate(claims.requests):
        for j, request in enumerate(requests):
            scene.seen[i, j] = [
                (Option(i, j, request.name, wanted), standing.devices(wanted, layout))
                for wanted in request.alternatives
            ]
    return scene


def evaluate(
    allocator: Allocator, layouts: Sequence[Layout], claims: Wanted, give_up: Callable[[], bool] | None = None
) -> None:
    """Evaluate all selectors on all devices of the nodes at once, so that later lookups find the results. Raises
    Interrupted."""
    entries = {id(slice.entry): slice.entry for layout in layouts for slice in layout.slices}
    for requests in claims.requests:
        for wanted in (wanted for request in requests for wanted in request.alternatives):
            allocator.selectors.match_many(entries.values(), wanted.selectors, give_up)
            of_class = allocator.selectors.set_of(wanted.selectors.of_class, ())
            allocator.selectors.match_many(entries.values(), of_class, give_up)


class Standing:
    def __init__(self, allocator: Allocator) -> None:
        self._selectors = allocator.selectors
        self._features = allocator.features
        self._rules = allocator.rules
        self._available: dict[int, Mapping[CounterKey, int]] = {}

    def devices(self, wanted: Alternative, layout: Layout) -> list[Seen]:
        return [
            Seen(pool, entry, kind)
            for pool in layout.pools
            for slice in pool.slices
            for entry, kind in self._of_slice(wanted, pool, slice)
        ]

    def _of_slice(self, wanted: Alternative, pool: Pool, slice: PoolSlice) -> list[tuple[DeviceEntry, VerdictKind]]:
        entry = slice.entry
        match = self._selectors.match(entry, wanted.selectors)
        of_class = match
        if wanted.selectors.of_request and match.matching != (1 << len(entry.devices)) - 1:
            of_class = self._selectors.match(entry, self._selectors.set_of(wanted.selectors.of_class, ()))
        visible = -1 if self._features.device_binding_and_status else ~entry.bindings
        kinds = []
        for device in entry.devices:
            bit = 1 << device.bit
            if not slice.reachable & bit:
                kind = VerdictKind.OTHER_NODE
            elif not visible & bit:
                kind = VerdictKind.BINDING_CONDITIONS
            elif match.matching & bit:
                kind = self.of_matching(wanted, pool, device)
            elif match.failing & bit:
                kind = VerdictKind.SELECTOR_ERROR
            elif of_class.matching & bit and of_class is not match:
                kind = VerdictKind.REQUEST_SELECTOR
            else:
                kind = VerdictKind.CLASS_SELECTOR
            kinds.append((device, kind))
        return kinds

    def of_matching(self, wanted: Alternative, pool: Pool, entry: DeviceEntry) -> VerdictKind:
        """Return the verdict on a device that all selectors match. Mode All ignores devices without enough capacity."""
        if wanted.is_all and self.capacity_problem(wanted, entry):
            return VerdictKind.CAPACITY
        if not wanted.admin_access and self._is_in_use(entry):
            return VerdictKind.IN_USE
        if self._features.device_taints and entry.device.taints and untolerated(entry.device, wanted.tolerations):
            return VerdictKind.TAINT
        if self.capacity_problem(wanted, entry):
            return VerdictKind.CAPACITY
        if entry.counters and self.lacking(wanted, pool, entry) is not None:
            return VerdictKind.COUNTERS
        return VerdictKind.FREE

    def _is_in_use(self, entry: DeviceEntry) -> bool:
        return entry.is_taken or (entry.shares > 0 and not self._features.consumable_capacity)

    def _is_exempt(self, wanted: Alternative) -> bool:
        return wanted.admin_access and self._rules.admin_is_exempt

    def capacity_problem(self, wanted: Alternative, entry: DeviceEntry) -> str | Amount | None:
        """Return why the requested capacity is impossible, or the amount that the device lacks."""
        if not self._features.consumable_capacity:
            return None
        if entry.is_simple and entry.consumed is None and not wanted.capacity:
            return None
        try:
            strict = self._rules.strict_capacity
            found = amounts(entry.device, dict(wanted.capacity), entry.identity.driver, strict=strict)
        except InvalidInput as e:
            return str(e)
        if isinstance(found, str):
            return found
        if self._is_exempt(wanted):
            return None
        consumed = entry.consumed or {}
        return next((a for a in found if consumed.get(a.name, 0) + a.consumed.nano > a.limit), None)

    def _has_its_counters(self, entry: DeviceEntry) -> bool:
        """Return whether an existing share of the device already holds its counters."""
        is_shared = entry.consumed is not None or (entry.shares > 0 and self._rules.shares_without_amounts)
        return entry.shareable and self._features.consumable_capacity and is_shared

    def taken(self, wanted: Alternative, entry: DeviceEntry) -> Counter[CounterKey]:
        """Return what the device would take from counters if it were allocated now."""
        needed: Counter[CounterKey] = Counter()
        if not self._is_exempt(wanted) and not self._has_its_counters(entry):
            for key, amount in entry.counters:
                needed[key] += amount
        return needed

    def lacking(self, wanted: Alternative, pool: Pool, entry: DeviceEntry) -> tuple[CounterKey, int, int] | str | None:
        """Return the counter that does not suffice, with the amount needed and the amount left."""
        if not self._features.partitionable_devices:
            return "takes from counters, but the feature PartitionableDevices is off"
        if self._is_exempt(wanted) or self._has_its_counters(entry):
            return None
        available = self._available.get(id(pool))
        if available is None:
            available = self._available[id(pool)] = pool.available()
        needed = self.taken(wanted, entry)
        sets = {key[0] for key in needed}
        for key, left in available.items():
            if left < needed[key] and (key[0] in sets or not self._rules.own_counter_sets):
                return (key, needed[key], left)
        return None
