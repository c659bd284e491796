"""Compare a slice in the cluster with the one that its driver wants.

A server leaves out empty fields, writes quantities in its own format and adds times to taints. None of these is a
difference. A different order of the devices is one.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.timestamps import parse_time

__all__ = ["CONTENT", "SERVED_CONTENT", "content", "same", "same_values"]

SERVED_CONTENT: Final = ("devices", "sharedCounters", "perDeviceNodeSelection")
"""The fields in which a server may drop what it does not support."""
CONTENT: Final = (*SERVED_CONTENT, "nodeSelector", "allNodes")
"""The fields of a slice's spec that its driver chooses."""

_TOLERANCE = timedelta(seconds=1)


def content(spec: Document) -> Document:
    return {member: spec[member] for member in CONTENT if spec.get(member)}


def same(a: Document, b: Document, members: Sequence[str] = CONTENT) -> bool:
    """Return True if two specs have the same values in these fields."""
    return all(_same_member(member, a.get(member), b.get(member)) for member in members)


def same_values(a: Any, b: Any) -> bool:
    return bool(_pruned(a) == _pruned(b))


def _same_member(member: str, a: Any, b: Any) -> bool:
    if a is b:
        return True
    match member:
        case "devices":
            return len(a or ()) == len(b or ()) and all(map(_same_device, a or (), b or ()))
        case "sharedCounters":
            return same_values(list(map(_counters, a or ())), list(map(_counters, b or ())))
    return same_values(a or None, b or None)  # a flag that is false is not set


def _same_device(a: Document, b: Document) -> bool:
    if a is b or a == b:
        return True
    taints, others = a.get("taints") or (), b.get("taints") or ()
    if len(taints) != len(others) or not all(map(_same_taint, taints, others)):
        return False
    return same_values(_comparable(a), _comparable(b))


def _same_taint(a: Document, b: Document) -> bool:
    if any((a.get(member) or "") != (b.get(member) or "") for member in ("key", "value", "effect")):
        return False
    since, other = a.get("timeAdded"), b.get("timeAdded")
    if not since or not other or since == other:
        return True
    try:
        return abs(parse_time(since) - parse_time(other)) <= _TOLERANCE
    except InvalidInput:
        return False


def _comparable(device: Document) -> Document:
    """Return the device without taints, and with quantities as numbers."""
    made = {member: value for member, value in device.items() if member != "taints"}
    made["capacity"] = _amounts(device.get("capacity"))
    made["consumesCounters"] = list(map(_counters, device.get("consumesCounters") or ()))
    mappings = device.get("nodeAllocatableResourceMappings") or {}
    made["nodeAllocatableResourceMappings"] = {name: _mapping(each) for name, each in mappings.items()}
    return made


def _counters(counters: Document) -> Document:
    return {**counters, "counters": _amounts(counters.get("counters"))}


def _mapping(mapping: Document) -> Document:
    """Add the default multiplier: a server may store it."""
    return {**mapping, "allocationMultiplier": _amounts(mapping.get("allocationMultiplier") or "1")}


def _amounts(value: Any) -> Any:
    """Convert all strings and numbers to quantities."""
    if isinstance(value, Mapping):
        return {key: _amounts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_amounts(each) for each in value]
    if value is None:
        return None
    try:
        return Quantity.parse(value).nano
    except InvalidInput:
        return value


def _pruned(value: Any) -> Any:
    """Remove fields that are null or empty."""
    if isinstance(value, Mapping):
        made = {key: _pruned(each) for key, each in value.items()}
        return {key: each for key, each in made.items() if each not in (None, [], {})}
    if isinstance(value, list):
        return [_pruned(each) for each in value]
    return value
