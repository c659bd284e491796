"""Resource slices as allocation sees them: what drivers publish, with the taints of DeviceTaintRules added.

A device has its own taints first, then those of the matching rules in the order of the rules' names. A rule without a
selector matches nothing. (Kubernetes adds its taint to every device when it allocates, and to none when it evicts.)
A slice of a node from which its driver is gone (`objects.node_drivers`) is hidden until the driver is back.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from devlet.cluster.informer import Changed
from devlet.control.informers import Informers
from devlet.objects.identifiers import DriverName, PoolName
from devlet.objects.node_drivers import gone_drivers, is_of_gone_driver
from devlet.objects.types.node import Node
from devlet.objects.types.slice import Device, ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintRule

__all__ = ["SliceTracker", "with_rules"]

SliceListener = Callable[[ResourceSlice | None, ResourceSlice | None], None]
_Place = tuple[DriverName | None, PoolName | None]

_by_name = attrgetter("metadata.name")


def with_rules(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """Return the slice with the taints of the rules added to its devices; the same object if no rule matches."""
    concerned = sorted((rule for rule in rules if _matches_pool(rule, slice_)), key=_by_name)
    if not concerned:
        return slice_
    before = slice_.spec.devices
    devices = tuple(_tainted(slice_, device, concerned) for device in before)
    if all(new is old for new, old in zip(devices, before, strict=True)):
        return slice_
    return replace(slice_, spec=replace(slice_.spec, devices=devices))


def _tainted(slice_: ResourceSlice, device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    identity = slice_.identity(device)
    taints = tuple(rule.spec.taint for rule in rules if rule.matches(identity))
    return replace(device, taints=(*device.taints, *taints)) if taints else device


def _matches_pool(rule: DeviceTaintRule, slice_: ResourceSlice) -> bool:
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.driver in (None, slice_.spec.driver)
        and selector.pool in (None, slice_.spec.pool.name)
    )


class SliceTracker:
    """Follows the slices, rules and nodes of the informers.

    `changed` is called at once for each slice that was added, removed, changed, hidden or shown again, `removed` for
    each slice that was deleted, hidden or not. Neither may wait or raise."""

    def __init__(
        self,
        informers: Informers,
        changed: SliceListener,
        removed: Callable[[ResourceSlice], None] = lambda slice_: None,
    ) -> None:
        self._changed = changed
        self._removed = removed
        self._nodes = informers.nodes
        self._published: dict[str, ResourceSlice] = {}
        self._on_node: defaultdict[str, set[str]] = defaultdict(set)
        self._pools: Counter[tuple[DriverName, PoolName]] = Counter()  # published slices
        self._hidden: set[str] = set()
        self._slices: dict[str, ResourceSlice] = {}
        self._names: dict[DriverName, dict[PoolName, set[str]]] = {}
        self._rules: defaultdict[_Place, dict[str, DeviceTaintRule]] = defaultdict(dict)
        informers.nodes.on_change(self._node_changed)
        informers.rules.on_change(self._rule_changed)
        informers.slices.on_change(self._slice_changed)

    def get(self, name: str) -> ResourceSlice | None:
        return self._slices.get(name)

    def all(self) -> list[ResourceSlice]:
        return list(self._slices.values())

    def _slice_changed(self, change: Changed[ResourceSlice]) -> None:
        _, name = change.key
        before = self._published.pop(name, None)
        if before is not None:
            self._forget(name, before)
        if change.new is not None:
            self._published[name] = change.new
            self._pools[_pool(change.new)] += 1
            if change.new.spec.node_name:
                self._on_node[change.new.spec.node_name].add(name)
        self._see(name)
        if before is not None and change.new is None:
            self._removed(before)

    def _forget(self, name: str, slice_: ResourceSlice) -> None:
        pool, node = _pool(slice_), slice_.spec.node_name
        self._pools[pool] -= 1
        if not self._pools[pool]:
            del self._pools[pool]
        if node:
            self._on_node[node].discard(name)
            if not self._on_node[node]:
                del self._on_node[node]

    def _node_changed(self, change: Changed[Node]) -> None:
        changed = gone_drivers(change.old) ^ gone_drivers(change.new)
        if changed:
            for name in sorted(self._on_node.get(change.key[1], ())):
                if self._published[name].spec.driver in changed:
                    self._see(name)

    def hidden(self) -> dict[DriverName, set[str]]:
        """Return the drivers whose slices are hidden, each with its nodes."""
        found: dict[DriverName, set[str]] = {}
        for name in self._hidden:
            spec = self._published[name].spec
            found.setdefault(spec.driver, set()).add(spec.node_name or "")
        return found

    def has_pool(self, driver: DriverName, pool: PoolName) -> bool:
        """Return True if a slice of the pool is published, hidden or not."""
        return (driver, pool) in self._pools

    def _see(self, name: str) -> None:
        """Show, replace or hide the slice, and report it."""
        old, new = self._slices.pop(name, None), self._published.get(name)
        if old is not None:
            self._unindex(name, old)
        self._hidden.discard(name)
        if new is not None and is_of_gone_driver(new, self._nodes.get(new.spec.node_name or "")):
            self._hidden.add(name)
            new = None
        if new is not None:
            new = self._slices[name] = with_rules(new, self._rules_for(new))
            self._names.setdefault(new.spec.driver, {}).setdefault(new.spec.pool.name, set()).add(name)
        if old is not None or new is not None:
            self._changed(old, new)

    def _unindex(self, name: str, slice_: ResourceSlice) -> None:
        pools = self._names[slice_.spec.driver]
        pools[slice_.spec.pool.name].remove(name)
        if not pools[slice_.spec.pool.name]:
            del pools[slice_.spec.pool.name]
        if not pools:
            del self._names[slice_.spec.driver]

    def _rules_for(self, slice_: ResourceSlice) -> Iterator[DeviceTaintRule]:
        driver, pool = slice_.spec.driver, slice_.spec.pool.name
        for place in ((driver, pool), (driver, None), (None, pool), (None, None)):
            yield from self._rules.get(place, {}).values()

    def _rule_changed(self, change: Changed[DeviceTaintRule]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.spec == new.spec:
            return
        touched = {name for rule in (old, new) if rule is not None for name in self._matched(rule)}
        if old is not None and (place := _place(old)) is not None:
            del self._rules[place][old.metadata.name]
        if new is not None and (place := _place(new)) is not None:
            self._rules[place][new.metadata.name] = new
        for name in sorted(touched):
            self._update(name)

    def _matched(self, rule: DeviceTaintRule) -> Iterator[str]:
        """Yield the names of the slices with a device that the rule matches."""
        if (place := _place(rule)) is None:
            return
        driver, pool = place
        for pools in self._names.values() if driver is None else [self._names.get(driver, {})]:
            for names in pools.values() if pool is None else [pools.get(pool, set())]:
                yield from (name for name in names if _has_device(self._slices[name], rule))

    def _update(self, name: str) -> None:
        published, old = self._published[name], self._slices[name]
        new = with_rules(published, self._rules_for(published))
        if new != old:
            self._slices[name] = new
            self._changed(old, new)


def _pool(slice_: ResourceSlice) -> tuple[DriverName, PoolName]:
    return slice_.spec.driver, slice_.spec.pool.name


def _place(rule: DeviceTaintRule) -> _Place | None:
    """Return the driver and pool that the rule selects, None for any of them. A rule without a selector selects
    nothing: return None."""
    selector = rule.spec.device_selector
    return (selector.driver, selector.pool) if selector is not None else None


def _has_device(slice_: ResourceSlice, rule: DeviceTaintRule) -> bool:
    return any(rule.matches(slice_.identity(device)) for device in slice_.spec.devices)
