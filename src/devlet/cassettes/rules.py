"""The rules for a cassette besides its types: names, limits, and devices that an API server would accept.

When a cassette is played, names in it become names of sockets and files, so every cassette is checked first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from devlet.cassettes.cassette import OWN_POOL, Cassette, Driver, Plugin, Pool
from devlet.errors import BadRequest, Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.kind_rules import Rules, validate_create
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.objects.schema.messages import message_of
from devlet.objects.schema.shape import conform
from devlet.plugins.devices import ID_LENGTH
from devlet.runtime.cdi.spec import ContainerEdits, Spec
from devlet.runtime.cdi.spec import Device as CdiDevice
from devlet.runtime.cdi.validation import problems as spec_problems
from devlet.runtime.cdi.versions import minimum
from devlet.sdk.values import HEALTHY, UNHEALTHY, UNKNOWN

__all__ = ["MAX_DEVICES", "MAX_DRIVERS", "problems"]

MAX_DRIVERS: Final = 100  # also for plugins and CDI specs
MAX_POOLS: Final = 100  # of one driver
MAX_DEVICES: Final = 10_000  # in total
_AT_ONCE: Final = 64
_NUMA_MAX: Final = (1 << 31) - 1
_HEALTHS: Final = (HEALTHY, UNHEALTHY, UNKNOWN)
_PLUGIN_HEALTHS: Final = (HEALTHY, UNHEALTHY)

Problems = Iterator[str]


def problems(cassette: Cassette) -> Problems:
    """Yield sentences that begin with a place, such as `drivers[0].name: …`; none if the cassette is valid."""
    counts = list(_counts(cassette))
    yield from counts
    if counts:
        return  # the rest would take too long to check
    yield from (f"node: {text}" for text in _named(cassette.node, names.dns_subdomain))
    for i, driver in enumerate(cassette.drivers):
        yield from _driver(driver, f"drivers[{i}]")
        yield from _hidden_pool(driver, cassette.node, f"drivers[{i}]")
    for i, plugin in enumerate(cassette.plugins):
        yield from _plugin(plugin, f"plugins[{i}]")
    for i, spec in enumerate(cassette.cdi):
        yield from (f"cdi[{i}].{text}" for text in spec_problems(spec))
    yield from _twice("drivers", (driver.name for driver in cassette.drivers))
    yield from _twice("plugins", (plugin.resource for plugin in cassette.plugins))


def _counts(cassette: Cassette) -> Problems:
    for name in ("drivers", "plugins", "cdi"):
        if (count := len(getattr(cassette, name))) > MAX_DRIVERS:
            yield f"{name}: {count} are more than the limit of {MAX_DRIVERS}"
    pools = [pool for driver in cassette.drivers for pool in driver.pools]
    devices = sum(len(pool.devices) for pool in pools) + sum(len(plugin.devices) for plugin in cassette.plugins)
    if devices > MAX_DEVICES:
        yield f"{devices} devices are more than the limit of {MAX_DEVICES}"
    if any(len(driver.pools) > MAX_POOLS for driver in cassette.drivers):
        yield f"a driver has more than the limit of {MAX_POOLS} pools"


def _driver(driver: Driver, path: str) -> Problems:
    if wrong := list(_named(driver.name, names.driver_name)):
        yield from (f"{path}.name: {driver.name[:100]!r}: {text}" for text in wrong)
        return
    for i, pool in enumerate(driver.pools):
        yield from (f"{path}.pools[{i}]{text}" for text in _pool(driver, pool))
    yield from _twice(f"{path}.pools", (pool.name for pool in driver.pools))
    known = {(pool.name, str(device.get("name"))) for pool in driver.pools for device in pool.devices}
    for i, each in enumerate(driver.prepared):
        if (each.pool or each.device) and (each.pool, each.device) not in known:
            yield f"{path}.prepared[{i}]: there is no device {each.device!r} in a pool {each.pool!r}"
        yield from (f"{path}.prepared[{i}].{text}" for text in _edits(each.container_edits))
    yield from _twice(f"{path}.prepared", (f"{each.pool}/{each.device}" for each in driver.prepared))
    for i, report in enumerate(driver.health):
        if (report.pool, report.device) not in known:
            yield f"{path}.health[{i}]: there is no device {report.device[:100]!r} in a pool {report.pool[:100]!r}"
        if report.health not in _HEALTHS:
            yield f"{path}.health[{i}].health: {report.health[:100]!r} is not one of {', '.join(_HEALTHS)}"
    yield from _twice(f"{path}.health", (f"{each.pool}/{each.device}" for each in driver.health))


def _hidden_pool(driver: Driver, node: str, path: str) -> Problems:
    if {OWN_POOL, node} <= {pool.name for pool in driver.pools}:
        yield f"{path}.pools: {node!r} is the name of the node, whose pool is {OWN_POOL}: rename one of them"


def _edits(edits: ContainerEdits) -> Problems:
    """Check edits like those of a device in a CDI spec, which they become."""
    if edits:
        spec = Spec("", "a.b/c", (CdiDevice("x", edits),))
        found = spec_problems(replace(spec, cdi_version=minimum(spec)))
        yield from (text.removeprefix("devices[0].") for text in found)


def _pool(driver: Driver, pool: Pool) -> Problems:
    """Check a pool as an API server checks slices, each with so few devices that their number is valid."""
    pieces = [{"sharedCounters": [each]} for each in pool.shared_counters]
    pieces += [{"devices": list(pool.devices[i : i + _AT_ONCE])} for i in range(0, len(pool.devices), _AT_ONCE)]
    for number, piece in enumerate(pieces or [{}]):
        offset = (number - len(pool.shared_counters)) * _AT_ONCE if "devices" in piece else number
        yield from dict.fromkeys(_cause(cause, offset) for cause in _causes(_slice(driver, pool, piece)))
    yield from _twice(".devices", (str(device.get("name")) for device in pool.devices))
    yield from _unknown_counters(pool)


def _unknown_counters(pool: Pool) -> Problems:
    """Check references to counters, which an API server cannot do because it checks one slice at a time."""
    known = {str(each.get("name")): set(each.get("counters") or ()) for each in map(_typed, pool.shared_counters)}
    for i, device in enumerate(pool.devices):
        for each in map(_typed, _typed(device).get("consumesCounters") or ()):
            name = str(each.get("counterSet"))
            if name not in known:
                yield f".devices[{i}].consumesCounters: there is no counter set {name!r} in the pool"
            elif unknown := set(each.get("counters") or ()) - known[name]:
                yield (
                    f".devices[{i}].consumesCounters: there is no counter {min(unknown)!r} in the counter set {name!r}"
                )


def _typed(document: Any) -> Document:
    """Drop fields of a wrong type, which are reported elsewhere."""
    types: dict[str, type] = {"counters": dict, "consumesCounters": list}
    if not isinstance(document, dict):
        return {}
    return {key: value for key, value in document.items() if isinstance(value, types.get(key, object))}


def _slice(driver: Driver, pool: Pool, piece: Document) -> Document:
    name = "node" if pool.name == OWN_POOL else pool.name
    numbers = {"name": name, "generation": 1, "resourceSliceCount": 1}
    head = {"apiVersion": RESOURCE_SLICES.api_version, "kind": "ResourceSlice", "metadata": {"name": "slice"}}
    return {**head, "spec": {"driver": driver.name, "pool": numbers, "nodeName": "node", **piece}}


def _causes(document: Document) -> Iterable[Cause]:
    message = message_of(RESOURCE_SLICES.api_version, "ResourceSlice")
    assert message is not None
    try:
        found = conform(document, message)
    except BadRequest as e:
        return [Cause("", str(e).partition(": ")[2].removeprefix("json: ").replace("field spec.", "field "), "")]
    unknown = [Cause("", "unknown field", name) for name in found.unknown]
    return chain(unknown, validate_create(found.document, Rules()))


def _cause(cause: Cause, offset: int) -> str:
    """Describe a cause with its place in the pool instead of the slice."""
    field = cause.field.removeprefix("spec.").removeprefix("pool.")
    head, bracket, rest = field.partition("[")
    number, closed, tail = rest.partition("]")
    if bracket and closed and number.isdigit() and head in ("devices", "sharedCounters"):
        field = f"{head}[{int(number) + offset}]{tail}"
    return f".{field}: {cause.message}" if field else f": {cause.message}"


def _plugin(plugin: Plugin, path: str) -> Problems:
    if names.extended_resource_name(plugin.resource):
        yield f"{path}.resource: {plugin.resource[:100]!r} must be a valid extended resource name"
    ids = [device.id for device in plugin.devices]
    if any(not id or len(id.encode()) > ID_LENGTH or not id.isprintable() for id in ids):
        yield f"{path}.devices: an id must be printable and have 1 to {ID_LENGTH} bytes"
    for health in sorted({device.health for device in plugin.devices} - set(_PLUGIN_HEALTHS)):
        yield f"{path}.devices: the health {health[:100]!r} is not one of {', '.join(_PLUGIN_HEALTHS)}"
    if any(not 0 <= node <= _NUMA_MAX for device in plugin.devices for node in device.numa_nodes):
        yield f"{path}.devices: a NUMA node is a number from 0 to {_NUMA_MAX}"
    yield from _twice(f"{path}.devices", ids)
    for i, grant in enumerate(plugin.grants):
        if unknown := set(grant.ids) - set(ids):
            yield f"{path}.grants[{i}].ids: there is no device {min(unknown)!r}"
        for name in grant.env:
            if not name or "=" in name or "\0" in name:
                yield f"{path}.grants[{i}].env: {name[:100]!r} cannot be the name of a variable"
    yield from _twice(f"{path}.grants", (",".join(sorted(grant.ids)) for grant in plugin.grants))


def _named(name: str, rule: names.Rule) -> Problems:
    yield from rule(name) if name else ("must not be empty",)


def _twice(path: str, given: Iterable[str]) -> Problems:
    for name, count in Counter(given).items():
        if count > 1:
            yield f"{path}: {name[:100]!r} occurs {count} times"
