"""Creates a cassette from slices, the views that a devlet has of its node, responses of plugins, and CDI specs.

Pure functions; `devlet capture` collects the input. Names of claims and pods are never recorded.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from devlet.cassettes import edits, grants, secrets
from devlet.cassettes.cassette import (
    HEALTHY,
    OWN_POOL,
    Cassette,
    DeviceEdits,
    DeviceHealth,
    Driver,
    Grant,
    Metadata,
    Options,
    Plugin,
    PluginDevice,
    Pool,
)
from devlet.cassettes.known_members import known_members
from devlet.cassettes.rules import MAX_DEVICES
from devlet.node.devices.order import natural
from devlet.objects import names as name_rules
from devlet.objects.documents import Document
from devlet.objects.schema.messages import message
from devlet.objects.values.quantity import Quantity
from devlet.runtime.cdi.spec import ContainerEdits, Spec
from devlet.runtime.cdi.spec import Device as CdiDevice
from devlet.runtime.cdi.versions import minimum

__all__ = ["Found", "SpecFile", "incomplete", "recorded", "remarks", "renamed"]

T = TypeVar("T")
Seen = TypeVar("Seen", DeviceEdits, DeviceHealth)
Part = TypeVar("Part", Spec, CdiDevice)

_UNHEALTHY: Final = "Unhealthy"
_OPTIONS: Final = Plugin("").options
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DEVICE: Final = message("k8s.io.api.resource.v1.Device")
_COUNTERS: Final = message("k8s.io.api.resource.v1.CounterSet")
_NOT_RECORDED: Final = ("timeAdded",)  # of a taint


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A CDI spec, and the name of its file."""

    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class Found:
    """The input of a recording. `slices` are those of the node, in the newest API version. `health` is the last health
    by driver, and `answers` are the responses of plugins by resource, with their devices. `capacity` and `allocatable`
    are used for plugins of which nothing else is known. The others are the views of a devlet."""

    node: str
    source: str = ""
    slices: Sequence[Document] = ()
    drivers: Sequence[Document] = ()
    plugins: Sequence[Document] = ()
    devices: Sequence[Document] = ()
    prepared_claims: Sequence[Document] = ()
    health: Mapping[str, Sequence[DeviceHealth]] = field(default_factory=dict)
    answers: Mapping[str, Sequence[Grant]] = field(default_factory=dict)
    specs: Sequence[SpecFile] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)

    @property
    def claims(self) -> set[str]:
        return {uid for claim in self.prepared_claims if (uid := (claim.get("spec") or {}).get("uid"))}


def recorded(found: Found, name: str = "") -> Cassette:
    return Cassette(
        node=found.node,
        metadata=Metadata(name=name, source=found.source),
        drivers=tuple(_drivers(found)),
        plugins=tuple(_plugins(found)),
        cdi=tuple(_specs(found)),
    )


def remarks(found: Found) -> Iterator[str]:
    """Yield sentences about what the cassette lacks and users would miss."""
    for (driver, pool), specs in _newest(found.slices).items():
        if _lacks_slices(specs):
            there = f"{len(specs)} of its {_wanted(specs)} slices exist"
            yield f"pool {pool} of driver {driver} is incomplete, devices may be missing: {there}"
    amounts = _amounts(found)
    for resource in sorted(_too_many(found, amounts)):
        limit = f"the limit of {MAX_DEVICES} devices on a cassette"
        yield f"{resource} is left out: {amounts[resource]} are more than {limit}"


def renamed(cassette: Cassette, node: str) -> Cassette:
    """Rename the node of a cassette. Pools named after the node need no change."""
    return msgspec.structs.replace(cassette, node=node)


# DRA drivers


def _drivers(found: Found) -> Iterator[Driver]:
    pools = _pools(found)
    here = [each["spec"] for each in reversed(found.drivers) if each["spec"].get("endpoint")]
    versions = {str(spec["driver"]): tuple(spec.get("advertised") or ()) for spec in here}
    telling = {spec["driver"] for spec in here if spec.get("healthService")}
    prepared = _prepared(found)
    for name in sorted(pools.keys() | versions.keys()):
        yield Driver(
            name,
            versions=versions.get(name, ()),
            pools=tuple(sorted(pools.get(name, ()), key=lambda pool: natural(pool.name))),
            prepared=edits.summarised(_still_there(prepared.get(name, ()), pools.get(name, ()))),
            health=tuple(_health(found, name, pools.get(name, ()))) if name in telling else (),
        )


def _pools(found: Found) -> dict[str, list[Pool]]:
    """Return the pools by driver."""
    pools: defaultdict[str, list[Pool]] = defaultdict(list)
    for (driver, _), specs in _newest(found.slices).items():
        pools[driver].append(_pool(found.node, specs))
    return pools


def incomplete(slices: Iterable[Document]) -> list[tuple[str, str]]:
    """Return the drivers and names of pools that are not, or not yet, published completely."""
    return [key for key, specs in _newest(slices).items() if _lacks_slices(specs)]


def _newest(slices: Iterable[Document]) -> dict[tuple[str, str], list[Document]]:
    """Return specs by driver and name of the pool, only from slices of the pool's highest generation."""
    groups: defaultdict[tuple[str, str], list[Document]] = defaultdict(list)
    for each in slices:
        spec = each["spec"]
        groups[spec["driver"], spec["pool"]["name"]].append(spec)
    highest = {key: max(map(_generation, group)) for key, group in groups.items()}
    return {key: [each for each in group if _generation(each) == highest[key]] for key, group in groups.items()}


def _lacks_slices(specs: Sequence[Document]) -> bool:
    return len(specs) < _wanted(specs)


def _wanted(specs: Sequence[Document]) -> int:
    return max(int(spec["pool"].get("resourceSliceCount") or 0) for spec in specs)


def _generation(spec: Document) -> int:
    return int(spec["pool"].get("generation") or 0)


def _pool(node: str, specs: Sequence[Document]) -> Pool:
    return Pool(
        name=_pool_name(node, specs[0]["pool"]["name"]),
        devices=tuple(_device(device) for spec in specs for device in spec.get("devices") or ()),
        shared_counters=tuple(
            known_members(each, _COUNTERS) for spec in specs for each in spec.get("sharedCounters") or ()
        ),
        incomplete=_lacks_slices(specs),
    )


def _device(device: Document) -> Document:
    """Drop the times at which taints were added, because they differ each time."""
    known = known_members(device, _DEVICE)
    if not known.get("taints"):
        return known
    taints = [{key: value for key, value in taint.items() if key not in _NOT_RECORDED} for taint in known["taints"]]
    return {**known, "taints": taints}


def _health(found: Found, driver: str, pools: Iterable[Pool]) -> Iterator[DeviceHealth]:
    reports = [
        DeviceHealth(
            _pool_name(found.node, each.pool), each.device, _unless(each.health, HEALTHY), _message(each, found.claims)
        )
        for each in found.health.get(driver, ())
    ]
    return _still_there(sorted(reports, key=lambda each: (natural(each.pool), natural(each.device))), pools)


def _message(report: DeviceHealth, claims: Collection[str]) -> str:
    return secrets.REDACTED if secrets.is_secret("", report.message) else secrets.without_claims(report.message, claims)


def _pool_name(node: str, pool: str) -> str:
    return OWN_POOL if pool == node else pool


def _still_there(seen: Iterable[Seen], pools: Iterable[Pool]) -> Iterator[Seen]:
    known = {(pool.name, device["name"]) for pool in pools for device in pool.devices}
    return (each for each in seen if (each.pool, each.device) in known)


def _prepared(found: Found) -> dict[str, list[DeviceEdits]]:
    """Return, by driver, the edits of the CDI devices of claims."""
    by_name = {
        f"{file.spec.kind}={device.name}": file.spec.container_edits + device.container_edits
        for file in found.specs
        for device in file.spec.devices
    }
    seen: defaultdict[str, list[DeviceEdits]] = defaultdict(list)
    for part in _parts(found):
        for device in part.get("devices") or ():
            merged = sum((by_name[cdi] for cdi in device.get("cdiDevices") or () if cdi in by_name), ContainerEdits())
            pool = _pool_name(found.node, device["pool"])
            if merged:
                seen[part["driver"]].append(DeviceEdits(_clean(merged, found.claims), pool, device["device"]))
    return seen


def _parts(found: Found) -> Iterator[Document]:
    for claim in found.prepared_claims:
        yield from (claim.get("status") or {}).get("drivers") or ()


def _clean(seen: ContainerEdits, claims: Collection[str]) -> ContainerEdits:
    hooks = tuple(
        msgspec.structs.replace(
            hook, args=tuple(secrets.redacted_args(hook.args)), env=tuple(secrets.redacted_env(hook.env))
        )
        for hook in seen.hooks
    )
    safe = msgspec.structs.replace(seen, env=tuple(secrets.redacted_env(seen.env)), hooks=hooks)
    return secrets.without_claims(safe, claims)


# Device plugins


def _plugins(found: Found) -> Iterator[Plugin]:
    devices: defaultdict[str, list[PluginDevice]] = defaultdict(list)
    for each in found.devices:
        spec, status = each["spec"], each.get("status") or {}
        numa = tuple(spec.get("numaNodes") or ())
        devices[spec["resource"]].append(PluginDevice(spec["id"], _plugin_health(status), numa))
    options = {each["spec"]["resource"]: each["spec"].get("options") or {} for each in reversed(found.plugins)}
    for resource in sorted(devices.keys() | options.keys()):
        listed = tuple(sorted(devices.get(resource, ()), key=lambda device: natural(device.id)))
        known = {device.id for device in listed}
        answers = [_clean_grant(grant) for grant in found.answers.get(resource, ()) if known.issuperset(grant.ids)]
        wanted = _unless(msgspec.convert(options.get(resource, {}), type=Options), _OPTIONS)
        yield Plugin(resource, listed, options=wanted, grants=grants.summarised(answers))
    yield from _counted(found)


def _plugin_health(status: Document) -> str:
    """Normalise the health that a plugin reports: a node treats everything but Healthy as unhealthy."""
    return HEALTHY if status.get("health") in (None, "", HEALTHY) else _UNHEALTHY


def _unless(value: T, default: T) -> T:
    """Return the default object if the options equal it, because only then they are left out of a file."""
    return default if value == default else value


def _clean_grant(grant: Grant) -> Grant:
    return msgspec.structs.replace(
        grant, env=secrets.redacted(grant.env), annotations=secrets.redacted(grant.annotations)
    )


def _counted(found: Found) -> Iterator[Plugin]:
    """Yield plugins from a node's status, which has only the number of their devices."""
    amounts = _amounts(found)
    for resource in sorted(amounts.keys() - _too_many(found, amounts)):
        total = amounts[resource]
        usable = _whole(found.allocatable.get(resource, found.capacity[resource]))
        word = resource.partition("/")[2]
        listed = [PluginDevice(f"{word}-{i}", HEALTHY if i < usable else _UNHEALTHY) for i in range(total)]
        yield Plugin(resource, tuple(listed), ids_unknown=True)


def _amounts(found: Found) -> dict[str, int]:
    """Return the amounts of resources of which nothing else is known."""
    known = {each["spec"]["resource"] for each in (*found.devices, *found.plugins)}
    names = [name for name in found.capacity if name not in known and not name_rules.extended_resource_name(name)]
    return {name: total for name in names if (total := _whole(found.capacity[name])) > 0}


def _too_many(found: Found, amounts: Mapping[str, int]) -> set[str]:
    """Return the resources that exceed the limit, the largest ones first. Some of them count bytes, not devices."""
    capacity = MAX_DEVICES - len(found.devices) - sum(len(each["spec"].get("devices") or ()) for each in found.slices)
    left = set()
    for resource, total in sorted(amounts.items(), key=lambda item: item[1]):
        if total > capacity:
            left.add(resource)
        else:
            capacity -= total
    return left


def _whole(amount: str) -> int:
    return Quantity.parse(amount).as_int()


# CDI specs


def _specs(found: Found) -> Iterator[Spec]:
    """Return the specs that do not belong to a claim, for which drivers write files with its UID in the name."""
    of_claims = {
        cdi for part in _parts(found) for device in part.get("devices") or () for cdi in device.get("cdiDevices") or ()
    }
    for file in sorted(found.specs, key=lambda file: (file.spec.kind, file.name)):
        spec = file.spec
        kept = tuple(d for d in spec.devices if not _is_of_claim(f"{spec.kind}={d.name}", of_claims, found.claims))
        if kept and not _UUID.search(file.name):
            yield _clean_spec(msgspec.structs.replace(spec, devices=kept), found.claims)


def _is_of_claim(name: str, of_claims: Collection[str], uids: Collection[str]) -> bool:
    return name in of_claims or any(uid in name for uid in uids)


def _clean_spec(spec: Spec, claims: Collection[str]) -> Spec:
    clean = _clean_part(spec, claims)
    clean = msgspec.structs.replace(clean, devices=tuple(_clean_part(device, claims) for device in spec.devices))
    return msgspec.structs.replace(clean, cdi_version=minimum(clean))


def _clean_part(part: Part, claims: Collection[str]) -> Part:
    return msgspec.structs.replace(
        part,
        container_edits=_clean(part.container_edits, claims),
        annotations=secrets.without_claims(secrets.redacted(part.annotations), claims),
    )
