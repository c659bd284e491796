"""The messages of the Kubernetes API with their fields, as in the reference.

The table is data (`kube_schema.json`) that is read on first use; each message is built when it is first needed. A
message describes both the protobuf layout (`fields`, by number) and the JSON shape (`properties`, by key). They differ:
an `inline` field is a sub-message in protobuf, while its keys belong to the parent in JSON; and neither `kind` nor
`apiVersion` is part of a top-level object's message.
"""

import pkgutil
from functools import cache, cached_property, lru_cache
from typing import Any

import msgspec
from msgspec import Struct

__all__ = [
    "Field",
    "Message",
    "is_always_written",
    "keeps_zero",
    "kinds",
    "message",
    "message_of",
]

# These have only the meta/v1 form, and are sent with the API version of the object that they are about.
_META_KINDS = frozenset(
    {
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "Status",
        "UpdateOptions",
        "WatchEvent",
    }
)


class Field(Struct, frozen=True):
    """A field of a message. `type` is a scalar (string, bytes, bool, int32, int64) or the name of a message.

    With the label "map" it is the type of the values; keys are strings. Go writes a field whose value is zero unless
    `omitempty` (which has no effect on messages that are not pointers) or `omitzero` is set.
    """

    number: int
    type: str
    json_name: str = ""  # empty if inline
    label: str = "single"  # or "repeated", "map"
    wire: str = "bytes"  # or "varint", "fixed64"
    key: str = "string"
    pointer: bool = False
    omitempty: bool = False
    omitzero: bool = False
    inline: bool = False
    patch_strategy: tuple[str, ...] = ()  # for strategic merge patch: "merge", "replace", "retainKeys"
    patch_merge_key: str = ""
    list_type: str = ""  # for server-side apply: "atomic", "set", "map"
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""  # for server-side apply: "atomic", "granular"
    default: Any = None

    @property
    def special(self) -> str:
        """Return the name of the type's special JSON form ("quantity", "time", …), or an empty string."""
        return _table().special.get(self.type, "")

    @property
    def is_message(self) -> bool:
        """Return whether a value (or, with the labels "repeated" and "map", an element) is a JSON object with known
        keys."""
        return "." in self.type and not self.special

    def message(self) -> "Message":
        """Return the message of a value. Special types also have one: their protobuf layout."""
        return message(self.type)


class Message(Struct, frozen=True, dict=True, eq=False):
    """A structure of the API: its protobuf layout and its JSON shape. Each exists once."""

    name: str
    layout: tuple[Field, ...] = msgspec.field(name="fields")
    special: str = ""
    map_type: str = ""  # for server-side apply: "atomic" if always owned as a whole
    required: tuple[str, ...] = ()

    @cached_property
    def fields(self) -> dict[int, Field]:
        """Return the fields by protobuf number, ascending."""
        return {field.number: field for field in self.layout}

    @cached_property
    def properties(self) -> dict[str, Field]:
        """Return the fields by JSON key, with those of inline messages in their place."""
        found: dict[str, Field] = {}
        for field in self.layout:
            if field.inline:
                found.update(field.message().properties)
            elif field.json_name:
                found[field.json_name] = field
        return found

    @property
    def is_kind(self) -> bool:
        """Return whether the JSON object may have `kind` and `apiVersion`, which are not properties of the message."""
        return self.name in _kind_names()


class _Table(Struct, frozen=True):
    kinds: dict[str, str]
    special: dict[str, str]
    messages: dict[str, msgspec.Raw]


def message(name: str) -> Message:
    """Return the message with this full name, such as `k8s.io.api.core.v1.Pod`. Raises KeyError if it does not
    exist."""
    return _message(name)


@lru_cache(1024)  # of names that clients send
def message_of(api_version: str, kind: str) -> Message | None:
    """Return the message of objects with this apiVersion and kind; None if the table does not have it."""
    version = "v1" if kind in _META_KINDS else api_version
    name = _table().kinds.get(f"{version}/{kind}")
    return None if name is None else _message(name)


def kinds() -> dict[str, str]:
    """Return all kinds: `apiVersion/Kind` with the name of their message. Do not modify the result."""
    return _table().kinds


@cache
def _kind_names() -> frozenset[str]:
    return frozenset(_table().kinds.values())


@cache
def _message(name: str) -> Message:
    return msgspec.json.decode(_table().messages[name], type=Message)


@cache
def _table() -> _Table:
    data = pkgutil.get_data(__package__, "kube_schema.json")
    if data is None:
        raise FileNotFoundError("kube_schema.json is missing from this installation of devlet")
    return msgspec.json.decode(data, type=_Table)


def keeps_zero(field: Field) -> bool:
    """Return whether a field that is set to its zero value is written."""
    return not field.omitzero if _is_struct(field) else field.pointer or not field.omitempty


def is_always_written(field: Field) -> bool:
    """Return whether the field is written even if it is not set."""
    return not field.omitzero if _is_struct(field) and not field.pointer else not field.omitempty


def _is_struct(field: Field) -> bool:
    """Return whether the field is a struct in Go, for which `omitempty` has no effect. Named list types are messages in
    protobuf, but not structs."""
    return field.label == "single" and "." in field.type and field.special != "items"
