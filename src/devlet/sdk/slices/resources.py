"""Convert pools, as a driver's author writes them, into the content of slices.

A pool is divided into slices in the order of its devices, so authors need not know how many devices a slice may have.
Errors that an API server would report are found before anything is written, and name the pool and the device.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from devlet.errors import Cause, InvalidInput
from devlet.objects.documents import Document
from devlet.objects.schema.messages import message
from devlet.objects.schema.shape import conform
from devlet.objects.validation.counters import COUNTER_SETS_MAX
from devlet.objects.validation.device import is_advanced
from devlet.objects.validation.slice import ADVANCED_DEVICES_MAX, DEVICES_MAX
from devlet.objects.validation.slice import check as check_slice
from devlet.sdk.mistakes import type_problem
from devlet.sdk.values import Capacity, Device, Pool, Version

__all__ = ["WantedPool", "wanted"]

_SHOWN: Final = 10  # problems in one error
_API: Final = "k8s.io.api.resource.v1."
_NODE_MEMBERS = ("nodeName", "nodeSelector", "allNodes")
_KINDS = {str: "string", bool: "bool", int: "int", Version: "version"}
_device_path = re.compile(r"spec\.devices\[([0-9]+)\]\.?(.*)").fullmatch
_counters_path = re.compile(r"spec\.sharedCounters\[([0-9]+)\]\.?(.*)").fullmatch


class WantedPool(Struct, frozen=True):
    """A pool to publish. `slices` are the parts of the specs that the driver chooses: see `comparing.CONTENT`.
    `unknown` are fields in them that this version of the API does not have."""

    name: str
    slices: tuple[Document, ...]
    generation: int = 0
    unknown: tuple[str, ...] = ()


def wanted(pools: Mapping[str, Pool], driver: str, node: str = "") -> dict[str, WantedPool]:
    """Return the pools by name. Raise InvalidInput, which names the first problems, if something is wrong."""
    made: dict[str, WantedPool] = {}
    problems: list[str] = []
    for name, pool in pools.items():
        try:
            made[name] = _wanted(name, pool)
        except InvalidInput as e:
            problems.append(str(e))
            continue
        problems += islice(_problems(made[name], driver, node), _SHOWN + 1)
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        raise InvalidInput("; ".join([*problems[:_SHOWN], *more]))
    return made


def _check_types(name: object, pool: object) -> None:
    """Check the types of what the author gave."""
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is not the name of a pool: it must be a string")
    if not isinstance(pool, Pool):
        raise InvalidInput(f"pool {name}: {pool!r} is not a Pool")
    if not isinstance(pool.devices, Sequence):
        raise InvalidInput(f"pool {name}: its devices are {pool.devices!r}, expected a list of Device")
    for each in pool.devices:
        if not isinstance(each, Device):
            raise InvalidInput(f"pool {name}: {each!r} is not a Device")
    _check_mapping(f"pool {name}: counters", pool.counters)
    if problem := type_problem(pool, ("generation", "all_nodes")):
        raise InvalidInput(f"pool {name}: {problem}")


def _wanted(name: str, pool: Pool) -> WantedPool:
    _check_types(name, pool)
    sets = [_counter_set(name, set_name, pool.counters[set_name]) for set_name in pool.counters]
    unknown: list[str] = []
    devices = [_device(f"pool {name}, device {device.name}", device, unknown) for device in pool.devices]
    contents: list[Document] = [{"sharedCounters": each} for each in _chunks(sets)]
    contents += [{"devices": each} for each in _split(devices)]
    where = _selection(f"pool {name}", pool, devices, unknown)
    slices = tuple({**each, **where} for each in contents or [{}])
    return WantedPool(name, slices, pool.generation, tuple(unknown))


def _selection(where: str, pool: Pool, devices: Sequence[Document], unknown: list[str]) -> Document:
    made: Document = {}
    if pool.node_selector:
        kind = "k8s.io.api.core.v1.NodeSelector"
        made["nodeSelector"] = _conformed(f"{where}: nodeSelector", pool.node_selector, kind, unknown)
    if pool.all_nodes:
        made["allNodes"] = True
    if any(member in device for device in devices for member in _NODE_MEMBERS):
        made["perDeviceNodeSelection"] = True
    return made


def _chunks(sets: list[Document]) -> Iterator[list[Document]]:
    for start in range(0, len(sets), COUNTER_SETS_MAX):
        yield sets[start : start + COUNTER_SETS_MAX]


def _split(devices: Sequence[Document]) -> Iterator[list[Document]]:
    """Divide the devices into as few slices as their order allows. One device with taints, for example, halves the
    number of devices in its slice."""
    chunk: list[Document] = []
    limit = DEVICES_MAX
    for device in devices:
        needed = ADVANCED_DEVICES_MAX if is_advanced(device) else limit
        if len(chunk) >= needed:
            yield chunk
            chunk, needed = [], ADVANCED_DEVICES_MAX if is_advanced(device) else DEVICES_MAX
        chunk.append(device)
        limit = needed
    if chunk:
        yield chunk


# Values


def _device(where: str, device: Device, unknown: list[str]) -> Document:
    for member in ("attributes", "capacity", "consumes", "more"):
        _check_mapping(f"{where}: {member}", getattr(device, member))
    if problem := type_problem(device, ("name", "taints")):
        raise InvalidInput(f"{where}: {problem}")
    made: Document = {"name": device.name}
    if device.attributes:
        made["attributes"] = {name: _attribute(where, name, value) for name, value in device.attributes.items()}
    if device.capacity:
        made["capacity"] = {name: _capacity(where, name, value) for name, value in device.capacity.items()}
    if device.taints:
        made["taints"] = [{"key": t.key, "value": t.value, "effect": t.effect} for t in device.taints]
    if device.consumes:
        consumed = device.consumes.items()
        made["consumesCounters"] = [{"counterSet": of, **_counters(where, of, each)} for of, each in consumed]
    if device.allow_multiple_allocations:
        made["allowMultipleAllocations"] = True
    if twice := sorted(made.keys() & device.more.keys()):
        raise InvalidInput(f"{where}: {', '.join(twice)} is given twice, also in `more`")
    return _conformed(where, {**made, **device.more}, f"{_API}Device", unknown)


def _check_mapping(where: str, given: object) -> None:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{where}: {given!r} is not a mapping from names to values")


def _counter_set(pool: str, name: str, counters: Mapping[str, str | int]) -> Document:
    where = f"pool {pool}, counter set {name}"
    return _conformed(where, {"name": name, **_counters(where, name, counters)}, f"{_API}CounterSet", [])


def _counters(where: str, name: str, counters: Mapping[str, str | int]) -> Document:
    _check_mapping(f"{where}: {name}", counters)
    return {"counters": {key: {"value": _amount(where, f"{name}/{key}", each)} for key, each in counters.items()}}


def _attribute(where: str, name: str, value: Any) -> Document:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        kinds = {_KINDS.get(type(each)) for each in value}
        if len(kinds) == 1 and (kind := kinds.pop()):
            return {f"{kind}s": [_plain(each) for each in value]}
        raise InvalidInput(f"{where}: attribute {name}: {value!r} is not a list of values of one type")
    if kind := _KINDS.get(type(value)):
        return {kind: _plain(value)}
    raise InvalidInput(f"{where}: attribute {name}: {value!r} is not a string, integer, bool or Version")


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, Version) else value


def _capacity(where: str, name: str, capacity: str | int | Capacity) -> Document:
    if not isinstance(capacity, Capacity):
        return {"value": _amount(where, name, capacity)}
    policy = {"requestPolicy": capacity.policy} if capacity.policy else {}
    return {"value": _amount(where, name, capacity.value), **policy}


def _amount(where: str, name: str, value: Any) -> str:
    if isinstance(value, str) or type(value) is int:
        return str(value)
    raise InvalidInput(f"{where}: {name}: {value!r} is not a quantity such as 2 or 1.5Gi")


def _conformed(where: str, document: Document, name: str, unknown: list[str]) -> Document:
    """Return a document as the cluster will store it. Fields that the API does not have are added to `unknown`."""
    try:
        made = conform(document, message(name))
    except InvalidInput as e:
        raise InvalidInput(f"{where}: {e}") from e
    unknown += (f"{where}: {path}{_hint(path, name)}" for path in made.unknown)
    return made.document


def _hint(path: str, name: str) -> str:
    near = get_close_matches(path.rpartition(".")[2], _member_names(name), 1)
    return f" (did you mean {near[0]}?)" if near else ""


@cache
def _member_names(name: str) -> frozenset[str]:
    """Return the names of the fields of a message, and of all messages in it."""
    members = message(name).properties
    below = [_member_names(field.type) for field in members.values() if field.is_message]
    return frozenset(members).union(*below)


# Rules


def _problems(pool: WantedPool, driver: str, node: str) -> Iterator[str]:
    """Yield problems of the whole pool, which no server reports, and only without these the problems of its slices."""
    found = list(islice(_mistakes(pool), _SHOWN + 1))
    yield from found
    if not found:
        for content in pool.slices:
            yield from _broken_rules(pool, content, driver, node)


def _mistakes(pool: WantedPool) -> Iterator[str]:
    sets = [each for content in pool.slices for each in content.get("sharedCounters", ())]
    counters = {each["name"]: each.get("counters") or {} for each in sets}
    seen: set[str] = set()
    for content in pool.slices:
        for device in content.get("devices", ()):
            if device["name"] in seen:
                yield f'pool {pool.name}: duplicate device "{device["name"]}"'
            seen.add(device["name"])
            yield from _unknown_counters(f"pool {pool.name}, device {device['name']}", device, counters)


def _unknown_counters(where: str, device: Document, counters: Mapping[str, Document]) -> Iterator[str]:
    for consumed in device.get("consumesCounters") or ():
        name = consumed.get("counterSet", "")
        if name not in counters:
            yield f'{where}: counter set "{name}" is not in the pool'
            continue
        for counter in sorted((consumed.get("counters") or {}).keys() - counters[name].keys()):
            yield f'{where}: counter "{counter}" is not in counter set "{name}"'


def _broken_rules(pool: WantedPool, content: Document, driver: str, node: str) -> Iterator[str]:
    if node and (chosen := [each for each in content if each not in ("devices", "sharedCounters")]):
        hint = "a pool with a selection of its own is published with `single_pool`"
        yield f"pool {pool.name}: {', '.join(chosen)} and nodeName {node} exclude each other: {hint}"
        return
    numbers = {"name": pool.name, "generation": pool.generation, "resourceSliceCount": len(pool.slices)}
    spec = {"driver": driver, "pool": numbers, **({"nodeName": node} if node else {}), **content}
    for cause in check_slice({"spec": spec}, None):
        yield f"pool {pool.name}{_place(cause, content)}: {cause.message}"


def _place(cause: Cause, content: Document) -> str:
    if found := _device_path(cause.field):
        field = f": {found[2]}" if found[2] else ""
        return f", device {content['devices'][int(found[1])]['name']}{field}"
    if found := _counters_path(cause.field):
        return f", counter set {content['sharedCounters'][int(found[1])]['name']}: {found[2]}"
    return f": {cause.field}"
