"""Resource slices as allocation has to see them: what drivers publish, with the taints of DeviceTaintRules added.

A device has its own taints first, then those of the rules that match it, in the order of the rules' names. A rule
without a selector matches nothing (the reference gives its taint to every device here, and to none when it evicts).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from devlet.cluster.informer import Changed
from devlet.control.informers import Informers
from devlet.objects.identifiers import DriverName, PoolName
from devlet.objects.slice import Device, ResourceSlice
from devlet.objects.taint_rule import DeviceTaintRule

__all__ = ["SliceTracker", "with_rules"]

SliceListener = Callable[[ResourceSlice | None, ResourceSlice | None], None]
_Place = tuple[DriverName | None, PoolName | None]

_by_name = attrgetter("metadata.name")


def with_rules(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the rules' taints in its devices; the same object if no rule matches."""
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
    """Follows the slices and rules of the informers. `changed` hears of each slice that is new, gone or different, at
    once; it must not wait, and not raise."""

    def __init__(self, informers: Informers, changed: SliceListener) -> None:
        self._changed = changed
        self._published: dict[str, ResourceSlice] = {}
        self._slices: dict[str, ResourceSlice] = {}
        self._names: dict[DriverName, dict[PoolName, set[str]]] = {}
        self._rules: defaultdict[_Place, dict[str, DeviceTaintRule]] = defaultdict(dict)
        informers.rules.on_change(self._rule_changed)
        informers.slices.on_change(self._slice_changed)

    def get(self, name: str) -> ResourceSlice | None:
        return self._slices.get(name)

    def all(self) -> list[ResourceSlice]:
        return list(self._slices.values())

    def _slice_changed(self, change: Changed[ResourceSlice]) -> None:
        _, name = change.key
        old = self._slices.pop(name, None)
        if old is not None:
            self._unindex(name, old)
        if change.new is None:
            del self._published[name]
            return self._changed(old, None)
        self._published[name] = change.new
        new = with_rules(change.new, self._rules_for(change.new))
        self._slices[name] = new
        self._names.setdefault(new.spec.driver, {}).setdefault(new.spec.pool.name, set()).add(name)
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
            self._merge_again(name)

    def _matched(self, rule: DeviceTaintRule) -> Iterator[str]:
        """The names of the slices with a device that the rule is about."""
        if (place := _place(rule)) is None:
            return
        driver, pool = place
        for pools in self._names.values() if driver is None else [self._names.get(driver, {})]:
            for names in pools.values() if pool is None else [pools.get(pool, set())]:
                yield from (name for name in names if _has_device(self._slices[name], rule))

    def _merge_again(self, name: str) -> None:
        published, old = self._published[name], self._slices[name]
        new = with_rules(published, self._rules_for(published))
        if new != old:
            self._slices[name] = new
            self._changed(old, new)


def _place(rule: DeviceTaintRule) -> _Place | None:
    """Which pools it is about, None: any. None as a whole: it has no selector, and is about nothing."""
    selector = rule.spec.device_selector
    return (selector.driver, selector.pool) if selector is not None else None


def _has_device(slice_: ResourceSlice, rule: DeviceTaintRule) -> bool:
    return any(rule.matches(slice_.identity(device)) for device in slice_.spec.devices)
