"""The differences of two cassettes: devices that were added or removed, and changes to devices in both.

What only one of them can know is not a difference: for example, ids of devices of which the other has only the number,
or what containers get if that was not recorded. Amounts are compared by value. Names are equal with and without the
driver's domain, and so are pools that are named after their node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from devlet.cassettes import edits, grants
from devlet.cassettes.cassette import CLUSTER, HEALTHY, Cassette, Driver, Plugin, PluginDevice, Pool
from devlet.cassettes.placeholders import changed, filled
from devlet.errors import DevletError
from devlet.node.devices.order import natural
from devlet.objects.documents import Document
from devlet.objects.values.quantity import Quantity
from devlet.runtime.cdi.spec import ContainerEdits
from devlet.sdk.values import UNKNOWN

__all__ = ["Change", "Difference", "differences"]

_KEYED: Final = ("attributes", "capacity")
_UNORDERED: Final = (
    *("strings", "ints", "bools", "versions"),  # of an attribute with several values
    *(
        "env",
        "deviceNodes",
        "additionalGids",
        "netDevices",
        "devices",
        "cdiDevices",
    ),  # not mounts: one may hide another
)
_AMOUNTS: Final = ("value", "default", "min", "max", "step", "validValues")

T = TypeVar("T")


class Change(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Difference(Struct, frozen=True, omit_defaults=True):
    """A difference. `object` names what differs, as in `driver NAME` or `device DRIVER/POOL/NAME`. `field` is empty if
    all of it was added or removed. A missing value is None."""

    change: Change
    object: str
    field: str = ""
    before: Any = None
    after: Any = None


Differences = Iterator[Difference]


def differences(before: Cassette, after: Cassette) -> list[Difference]:
    """Return the differences by driver and plugin, each in the order of its devices."""
    return [
        *_drivers(_comparable_drivers(before, after), _comparable_drivers(after, before)),
        *_plugins(_comparable_plugins(before, after), _comparable_plugins(after, before)),
        *_specs(before, after),
    ]


def _comparable_drivers(cassette: Cassette, other: Cassette) -> Sequence[Driver]:
    """Return the drivers that the other recording could contain: a cluster knows only drivers with slices."""
    seen = {driver.name for driver in other.drivers}
    return [d for d in cassette.drivers if d.pools or d.name in seen or not _is_cluster(other)]


def _comparable_plugins(cassette: Cassette, other: Cassette) -> Sequence[Plugin]:
    """Return the plugins that the other recording could contain: a cluster knows only plugins with devices."""
    seen = {plugin.resource for plugin in other.plugins}
    return [p for p in cassette.plugins if p.devices or p.resource in seen or not _is_cluster(other)]


def _is_cluster(cassette: Cassette) -> bool:
    return cassette.metadata.source == CLUSTER


def _drivers(before: Sequence[Driver], after: Sequence[Driver]) -> Differences:
    for name, old, new in _pairs({d.name: d for d in before}, {d.name: d for d in after}):
        if old is None or new is None:
            yield _whole(f"driver {name}", old, new)
        else:
            if old.versions and new.versions:
                yield from _field(f"driver {name}", "versions", sorted(old.versions), sorted(new.versions))
            yield from _pools(old, new)


def _pools(before: Driver, after: Driver) -> Differences:
    for name, old, new in _pairs({p.name: p for p in before.pools}, {p.name: p for p in after.pools}):
        where = f"{before.name}/{name}"
        if old is None or new is None:
            yield _whole(f"pool {where}", old, new)
            continue
        yield from _counters(f"counters {where}", old, new)
        yield from _devices(before, after, old, new)


def _counters(where: str, before: Pool, after: Pool) -> Differences:
    for name, old, new in _pairs(_named(before.shared_counters), _named(after.shared_counters)):
        if old is None or new is None:
            yield from _unless_lost(_whole(f"{where}/{name}", old, new), before, after)
        else:
            yield from _fields(f"{where}/{name}", _amounts(old), _amounts(new))


def _unless_lost(difference: Difference, before: Pool, after: Pool) -> Differences:
    """Drop a difference if an incomplete pool lacks the device, which may be in a missing slice."""
    if not (after if difference.change is Change.REMOVED else before).incomplete:
        yield difference


def _amounts(counters: Document) -> Document:
    return dict(counters.get("counters") or {})


def _devices(before: Driver, after: Driver, old_pool: Pool, new_pool: Pool) -> Differences:
    for name, old, new in _pairs(_named(old_pool.devices), _named(new_pool.devices)):
        where = f"device {before.name}/{old_pool.name}/{name}"
        if old is None or new is None:
            yield from _unless_lost(_whole(where, old, new), old_pool, new_pool)
            continue
        yield from _fields(where, _flat(old, before.name), _flat(new, before.name))
        if before.health and after.health:
            yield from _field(where, "health", *(_health(each, old_pool.name, name) for each in (before, after)))
        seen = [edits.known(before, old_pool.name, name), edits.known(after, new_pool.name, name)]
        both = [_filled(each, name) for each in seen if each is not None]
        if len(both) == 2:
            yield from _field(where, "containerEdits", *both)


def _health(driver: Driver, pool: str, device: str) -> str:
    """Return the health of a device, without its message, which may differ each time."""
    return next((each.health for each in driver.health if (each.pool, each.device) == (pool, device)), UNKNOWN)


def _filled(seen: ContainerEdits, device: str) -> Document:
    """Return the edits for this device, with placeholders filled."""
    found: Document = msgspec.to_builtins(changed(seen, lambda text: filled(text, edits.names(device))))
    return found


def _flat(device: Document, driver: str) -> Document:
    """Return each attribute and capacity as a separate field."""
    found: Document = {}
    for key, value in device.items():
        if key in _KEYED:
            found |= {f"{key}[{_short(name, driver)}]": each for name, each in (value or {}).items()}
        elif key == "taints":
            found |= {f"taints[{t.get('key')}:{t.get('effect')}]": t.get("value", "") for t in value or ()}
        elif key == "consumesCounters":
            found |= {f"consumesCounters[{each.get('counterSet')}]": _amounts(each) for each in value or ()}
        elif key != "name":
            found[key] = value
    return found


def _short(name: str, driver: str) -> str:
    return name.removeprefix(f"{driver}/")


# Device plugins


def _plugins(before: Sequence[Plugin], after: Sequence[Plugin]) -> Differences:
    for name, old, new in _pairs({p.resource: p for p in before}, {p.resource: p for p in after}):
        if old is None or new is None:
            yield _whole(f"plugin {name}", old, new)
        elif old.ids_unknown or new.ids_unknown:
            yield from _fields(f"plugin {name}", _numbers(old), _numbers(new))
        else:
            yield from _fields(f"plugin {name}", msgspec.to_builtins(old.options), msgspec.to_builtins(new.options))
            yield from _plugin_devices(old, new)


def _numbers(plugin: Plugin) -> Document:
    return {
        "devices": len(plugin.devices),
        "healthy": sum(device.health == HEALTHY for device in plugin.devices),
    }


def _plugin_devices(before: Plugin, after: Plugin) -> Differences:
    for id, old, new in _pairs(_by_id(before), _by_id(after)):
        where = f"device {before.resource}/{id}"
        if old is None or new is None:
            yield _whole(where, old, new)
            continue
        yield from _field(where, "health", old.health, new.health)
        yield from _field(where, "numaNodes", sorted(old.numa_nodes), sorted(new.numa_nodes))
        if _is_known(before, id) and _is_known(after, id):
            yield from _field(where, "grant", *(_granted(plugin, id) for plugin in (before, after)))


def _by_id(plugin: Plugin) -> dict[str, PluginDevice]:
    return {device.id: device for device in plugin.devices}


def _is_known(plugin: Plugin, id: str) -> bool:
    return any(grant.ids in ((), (id,)) for grant in plugin.grants)


def _granted(plugin: Plugin, id: str) -> Document:
    found: Document = msgspec.to_builtins(grants.for_devices(plugin, [id]))
    return found


# CDI specs


def _specs(before: Cassette, after: Cassette) -> Differences:
    if _is_cluster(before) or _is_cluster(after):
        return  # it cannot have recorded them
    for name, old, new in _pairs(_cdi_devices(before), _cdi_devices(after)):
        if old is None or new is None:
            yield _whole(f"cdi {name}", old, new)
        else:
            yield from _field(f"cdi {name}", "containerEdits", old, new)


def _cdi_devices(cassette: Cassette) -> dict[str, Document]:
    return {
        f"{spec.kind}={device.name}": msgspec.to_builtins(spec.container_edits + device.container_edits)
        for spec in cassette.cdi
        for device in spec.devices
    }


# Shared


def _pairs(before: Mapping[str, T], after: Mapping[str, T]) -> Iterator[tuple[str, T | None, T | None]]:
    for name in sorted(before.keys() | after.keys(), key=natural):
        yield name, before.get(name), after.get(name)


def _named(documents: Iterable[Document]) -> dict[str, Document]:
    return {str(each.get("name")): each for each in documents}


def _whole(where: str, before: Any, after: Any) -> Difference:
    if after is None:
        return Difference(Change.REMOVED, where, before=_size(before))
    return Difference(Change.ADDED, where, after=_size(after))


def _size(whole: Any) -> str | None:
    """Return how many devices were added or removed with it."""
    match whole:
        case Driver(pools=pools):
            count = sum(len(pool.devices) for pool in pools)
        case Pool(devices=devices) | Plugin(devices=devices):
            count = len(devices)
        case _:
            return None
    return f"{count} device{'s' * (count != 1)}"


def _fields(where: str, before: Document, after: Document) -> Differences:
    for name, old, new in _pairs(before, after):
        yield from _field(where, name, old, new)


def _field(where: str, name: str, before: Any, after: Any) -> Differences:
    if _normal(before) != _normal(after):
        yield Difference(Change.CHANGED, where, name, before, after)


def _normal(value: Any) -> Any:
    """Return a comparable form: amounts by value, unordered lists sorted, and null like a missing value."""
    match value:
        case dict():
            return {key: _member(key, each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [_normal(each) for each in value]
    return value


def _member(key: str, value: Any) -> Any:
    if key in _AMOUNTS:
        return _amount(value)
    if key in _UNORDERED and isinstance(value, list | tuple):
        return sorted((_normal(each) for each in value), key=repr)
    return _normal(value)


def _amount(value: Any) -> Any:
    if isinstance(value, list):
        return [_amount(each) for each in value]
    try:
        return Quantity.parse(value)
    except DevletError:
        return value
