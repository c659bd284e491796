"""Convert objects between the API versions under which they are served.

Only the fields that differ are rewritten. All other parts of a document are shared with the input, which is never
modified. The versions of resource.k8s.io differ in two places:

                     v1, v1beta2                            v1beta1
    claim request    {name, exactly: {fields}}              {name, fields}
    slice device     {name, fields}                         {name, basic: {fields}}

Unknown keys stay at their own level. If the other version lacks that level, it is kept for the unknown keys alone,
under its own name: a v1beta1 request with `exactly: {new: 1}`, a v1 device with `basic: {new: 1}`. Converting back
restores them. A key is lost only if it is unknown in one version and a known, set field in the other.
A v1beta1 request whose known fields are all empty ("" or 0) has no exact request.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.kinds import BUILT_IN_GROUPS, Resource, group_of
from devlet.objects.subdocuments import is_empty

__all__ = ["convert", "convert_path", "warning_for"]

_V1 = "resource.k8s.io/v1"
_V1BETA2 = "resource.k8s.io/v1beta2"
_V1BETA1 = "resource.k8s.io/v1beta1"
_V1ALPHA3 = "resource.k8s.io/v1alpha3"
_CORE_EVENTS = "v1"
_NEW_EVENTS = "events.k8s.io/v1"

_EXACT_FIELDS = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
_DEVICE_FIELDS = (
    "attributes",
    "capacity",
    "consumesCounters",
    "nodeName",
    "nodeSelector",
    "allNodes",
    "taints",
    "bindsToNode",
    "bindingConditions",
    "bindingFailureConditions",
    "allowMultipleAllocations",
    "nodeAllocatableResourceMappings",
)
_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}


def convert(document: Document, to_api_version: str) -> Document:
    """Return the object or list in `to_api_version`. A document that already has that version is returned itself."""
    kind, api_version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise BadRequest("an object without kind and apiVersion cannot be converted")
    if api_version == to_api_version:
        return document
    if (change := _change(kind, api_version, to_api_version)) is not None:
        return {**change(document), "apiVersion": to_api_version}
    if (change := _change(kind.removesuffix("List"), api_version, to_api_version)) is not None:
        return {**_items(to_api_version, change)(document), "apiVersion": to_api_version}
    if group_of(api_version) == group_of(to_api_version) and group_of(api_version) not in BUILT_IN_GROUPS:
        return {**document, "apiVersion": to_api_version}  # versions of a custom resource differ in name only
    raise BadRequest(f"{kind} cannot be converted from {api_version} to {to_api_version}")


def _change(kind: str, api_version: str, to_api_version: str) -> "_Change | None":
    """Return the change between two versions, which goes through the stored version."""
    shapes = _SHAPES.get(kind, {})
    if api_version not in shapes or to_api_version not in shapes:
        return None
    read, write = shapes[api_version].read, shapes[to_api_version].write
    return lambda document: write(read(document))


def _items(to_api_version: str, change: "_Change") -> "_Change":
    """Convert the items of a list. Items usually carry no type of their own; those that do get the new version as
    well."""

    def item(document: Document) -> Document:
        changed = change(document)
        return {**changed, "apiVersion": to_api_version} if "apiVersion" in document else changed

    return _at("items", change=_each(item))


def _same(document: Document) -> Document:
    return document


def _at(*path: str, change: Callable[[Any], Any]) -> "_Change":
    """Apply `change` to the value at `path`, if there is one, copying only the objects on the way."""

    def changed(value: Any, keys: tuple[str, ...]) -> Any:
        if not keys:
            return change(value)
        if not isinstance(value, dict) or keys[0] not in value:
            return value
        return {**value, keys[0]: changed(value[keys[0]], keys[1:])}

    return lambda document: changed(document, path)


def _each(change: "_Change") -> Callable[[Any], Any]:
    def changed(items: Any) -> Any:
        if not isinstance(items, list):
            return items
        return [change(item) if isinstance(item, dict) else item for item in items]

    return changed


def _split(document: Document, keys: tuple[str, ...]) -> tuple[Document, Document]:
    """Return the part of the document with these keys, and the rest."""
    rest = {key: value for key, value in document.items() if key not in keys}
    return {key: document[key] for key in keys if key in document}, rest


def _nest_request(request: Document) -> Document:
    """Convert a request from v1beta1 to v1."""
    fields, nested = _split(request, _EXACT_FIELDS)
    unknown = request.get("exactly")
    if isinstance(unknown, dict):
        nested["exactly"] = {**unknown, **fields}
    elif not all(is_empty(value) for value in fields.values()):
        nested["exactly"] = fields
    return nested


def _flatten_request(request: Document) -> Document:
    """Convert a request from v1 to v1beta1, which always has deviceClassName."""
    exactly = request.get("exactly")
    if not isinstance(exactly, dict):
        return {**request, "deviceClassName": request.get("deviceClassName", "")}
    fields, unknown = _split(exactly, _EXACT_FIELDS)
    flat = {key: value for key, value in request.items() if key != "exactly"} | fields
    if unknown or all(is_empty(value) for value in fields.values()):
        flat["exactly"] = unknown
    return flat


def _flatten_device(device: Document) -> Document:
    """Convert a device from v1beta1 to v1."""
    basic = device.get("basic")
    fields, unknown = _split(basic, _DEVICE_FIELDS) if isinstance(basic, dict) else ({}, basic)
    flat = {key: value for key, value in device.items() if key != "basic"} | fields
    return {**flat, "basic": unknown} if unknown else flat


def _nest_device(device: Document) -> Document:
    """Convert a device from v1 to v1beta1, which always has basic."""
    fields, nested = _split(device, _DEVICE_FIELDS)
    unknown = device.get("basic")
    nested["basic"] = {**unknown, **fields} if isinstance(unknown, dict) else fields
    return nested


def _unset_node(spec: Any) -> Any:
    """Drop an empty nodeName and a false allNodes, which mean "not set" in v1beta1."""
    if not isinstance(spec, dict):
        return spec
    unset = {key for key, empty in (("nodeName", ""), ("allNodes", False)) if spec.get(key) == empty}
    return {key: value for key, value in spec.items() if key not in unset} if unset else spec


def _read_v1beta1_slice(document: Document) -> Document:
    return _flatten_devices(_unset_nodes(document))


def _rename_event(document: Document) -> Document:
    """Swap the names of the two event shapes. This works in both directions and is reversible, even for a key of the
    other shape."""
    return {_EVENT_SWAP.get(key, key): value for key, value in document.items()}


_EVENT_SWAP = _EVENT_NAMES | {new: core for core, new in _EVENT_NAMES.items()}

_Change = Callable[[Document], Document]

_flatten_devices = _at("spec", "devices", change=_each(_flatten_device))
_unset_nodes = _at("spec", change=_unset_node)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a version differs from the stored one: `read` converts to the stored version, `write` converts from it."""

    read: _Change = _same
    write: _Change = _same


_STORED = _Shape()


def _claim_shape(*spec: str) -> _Shape:
    requests = (*spec, "devices", "requests")
    return _Shape(_at(*requests, change=_each(_nest_request)), _at(*requests, change=_each(_flatten_request)))


_SHAPES: dict[str, dict[str, _Shape]] = {
    "DeviceClass": {_V1: _STORED, _V1BETA2: _STORED, _V1BETA1: _STORED},
    "ResourceClaim": {_V1: _STORED, _V1BETA2: _STORED, _V1BETA1: _claim_shape("spec")},
    "ResourceClaimTemplate": {_V1: _STORED, _V1BETA2: _STORED, _V1BETA1: _claim_shape("spec", "spec")},
    "ResourceSlice": {
        _V1: _STORED,
        _V1BETA2: _STORED,
        _V1BETA1: _Shape(_read_v1beta1_slice, _at("spec", "devices", change=_each(_nest_device))),
    },
    "DeviceTaintRule": {_V1BETA2: _STORED, _V1ALPHA3: _STORED},
    "Event": {_CORE_EVENTS: _STORED, _NEW_EVENTS: _Shape(_rename_event, _rename_event)},
}


_REQUEST = r"^(spec(?:\.spec)?\.devices\.requests\[\d+\])"
_DEVICE = r"^(spec\.devices\[\d+\])"
_END = r"(?=[.\[]|$)"
_NESTED_PATHS = (
    (re.compile(rf"{_REQUEST}\.({'|'.join(_EXACT_FIELDS)}){_END}"), r"\1.exactly.\2"),
    (re.compile(rf"{_DEVICE}\.basic{_END}"), r"\1"),
)
_PATHS = {
    _V1: _NESTED_PATHS,
    _V1BETA2: _NESTED_PATHS,
    _V1BETA1: (
        (re.compile(rf"{_REQUEST}\.exactly{_END}"), r"\1"),
        (re.compile(rf"{_DEVICE}\.({'|'.join(_DEVICE_FIELDS)}){_END}"), r"\1.basic.\2"),
    ),
    _CORE_EVENTS: tuple((re.compile(rf"^{new}{_END}"), core) for core, new in _EVENT_NAMES.items()),
    _NEW_EVENTS: tuple((re.compile(rf"^{core}{_END}"), new) for core, new in _EVENT_NAMES.items()),
}


def convert_path(path: str, to_api_version: str) -> str:
    """Return where `to_api_version` has the field that another version has at `path`. Its own paths are returned
    unchanged."""
    for pattern, replacement in _PATHS.get(to_api_version, ()):
        path, found = pattern.subn(replacement, path, count=1)
        if found:
            break
    return path


# Deprecated in one release, removed in another.
_DEPRECATED = {
    _V1BETA1: ("v1.35", "v1.38"),
    _V1BETA2: ("v1.36", "v1.39"),
}
_STILL_NEW = {(_V1BETA2, "DeviceTaintRule")}  # until v1.39


def warning_for(resource: Resource) -> str | None:
    """Return the warning for clients of a deprecated version."""
    kind, api_version = resource.kind.kind, resource.api_version
    life = _DEPRECATED.get(api_version)
    if life is None or (api_version, kind) in _STILL_NEW:
        return None
    deprecated, unavailable = life
    return f"{api_version} {kind} is deprecated in {deprecated}+, unavailable in {unavailable}+"
