"""The taints of each device, as its driver publishes them and as DeviceTaintRules add to them.

Published taints count only in the highest generation of the pool. Rules count for every device that they match,
published or not, because a device whose slice is gone may still be in use. Taints with effects other than NoSchedule
and NoExecute are ignored: they have no consequences.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple

from devlet.cluster.informer import Changed
from devlet.control.informers import Informers
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.slice import DeviceTaint, ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintRule, DeviceTaintSelector

__all__ = ["NO_EXECUTE", "NO_SCHEDULE", "DeviceTaints", "Taint", "TaintsOf"]

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"


class Taint(NamedTuple):
    """A taint and the name of its rule; empty if the driver publishes it."""

    taint: DeviceTaint
    rule: str = ""

    def __str__(self) -> str:
        shown = f"{self.taint.key}={self.taint.value}" if self.taint.value else self.taint.key
        return f"{shown}:{self.taint.effect}" + (f" of DeviceTaintRule {self.rule}" if self.rule else "")


TaintsOf = Callable[[DeviceIdentity], Iterable[Taint]]
_Published = dict[DeviceName, tuple[DeviceTaint, ...]]
_Place = tuple[DriverName | None, PoolName | None, DeviceName | None]


class DeviceTaints:
    """`changed` is called at once with a selector of the devices whose taints may have changed. It must not wait or
    raise."""

    def __init__(self, informers: Informers, changed: Callable[[DeviceTaintSelector], None] | None = None) -> None:
        self._changed = changed or (lambda _: None)
        self._pools: defaultdict[tuple[DriverName, PoolName], _Pool] = defaultdict(_Pool)
        self._rules: defaultdict[_Place, dict[str, DeviceTaint]] = defaultdict(dict)
        informers.rules.on_change(self._rule_changed)
        informers.slices.on_change(self._slice_changed)

    def of(self, device: DeviceIdentity) -> Iterator[Taint]:
        """Yield the taints of a device: those of the driver, then those of rules by name."""
        pool = self._pools.get((device.driver, device.pool))
        if pool is not None:
            yield from map(Taint, pool.taints.get(device.device, ()))
        if self._rules:
            yield from self._of_rules(device)

    def _of_rules(self, device: DeviceIdentity) -> list[Taint]:
        places = product((device.driver, None), (device.pool, None), (device.device, None))
        found = [self._rules[place] for place in places if place in self._rules]
        return [
            Taint(taint, name) for name, taint in sorted((item for rules in found for item in rules.items()), key=_name)
        ]

    def is_published(self, slice_: ResourceSlice) -> bool:
        """Return True if the slice belongs to the highest generation of its pool."""
        return self._pools[slice_.spec.driver, slice_.spec.pool.name].generation == slice_.spec.pool.generation

    def _slice_changed(self, change: Changed[ResourceSlice]) -> None:
        for slice_ in (change.old, change.new):
            if slice_ is not None and (slice_ is change.new or not _same_pool(slice_, change.new)):
                self._put_slice(slice_, is_gone=slice_ is not change.new)

    def _put_slice(self, slice_: ResourceSlice, *, is_gone: bool) -> None:
        driver, pool = slice_.spec.driver, slice_.spec.pool.name
        for device in self._pools[driver, pool].put(slice_, is_gone=is_gone):
            self._changed(DeviceTaintSelector(driver=driver, pool=pool, device=device))
        if not self._pools[driver, pool]:
            del self._pools[driver, pool]

    def _rule_changed(self, change: Changed[DeviceTaintRule]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.spec == new.spec:
            return
        concerned: list[DeviceTaintSelector] = []
        for rule in filter(None, (old, new)):
            if (selector := rule.spec.device_selector) is not None and _counts(rule.spec.taint):
                self._put_rule(rule, selector, is_gone=rule is not new)
                concerned.append(selector)
        for selector in dict.fromkeys(concerned):  # after the new rule is stored
            self._changed(selector)

    def _put_rule(self, rule: DeviceTaintRule, selector: DeviceTaintSelector, *, is_gone: bool) -> None:
        place = (selector.driver, selector.pool, selector.device)
        if not is_gone:
            self._rules[place][rule.metadata.name] = rule.spec.taint
            return
        del self._rules[place][rule.metadata.name]
        if not self._rules[place]:
            del self._rules[place]


class _Pool:
    """A pool of devices. `taints` has the tainted devices in slices of the highest generation."""

    def __init__(self) -> None:
        self._slices: dict[str, tuple[int, _Published]] = {}
        self.generation = 0
        self.taints: _Published = {}

    def __bool__(self) -> bool:
        return bool(self._slices)

    def put(self, slice_: ResourceSlice, *, is_gone: bool) -> list[DeviceName]:
        """Add, replace or remove a slice. Return the devices whose taints changed."""
        if is_gone:
            del self._slices[slice_.metadata.name]
        else:
            self._slices[slice_.metadata.name] = slice_.spec.pool.generation, _published(slice_)
        before, self.taints = self.taints, self._merged()
        return [
            name for name in sorted(before.keys() | self.taints.keys()) if before.get(name) != self.taints.get(name)
        ]

    def _merged(self) -> _Published:
        """Merge the taints of all slices. A device in two slices, an error of the driver, has the taints of both."""
        self.generation = max((generation for generation, _ in self._slices.values()), default=0)
        found: _Published = {}
        for _, (generation, published) in sorted(self._slices.items(), key=_name):
            if published and generation == self.generation:
                found |= {name: found.get(name, ()) + taints for name, taints in published.items()}
        return found


def _published(slice_: ResourceSlice) -> _Published:
    tainted = ((device.name, tuple(filter(_counts, device.taints))) for device in slice_.spec.devices if device.taints)
    return {name: taints for name, taints in tainted if taints}


def _counts(taint: DeviceTaint) -> bool:
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE)


def _same_pool(slice_: ResourceSlice, other: ResourceSlice | None) -> bool:
    return (
        other is not None and other.spec.driver == slice_.spec.driver and other.spec.pool.name == slice_.spec.pool.name
    )


def _name(item: tuple[str, object]) -> str:
    return item[0]
