"""The protobuf messages that every CEL environment knows, and their CEL types.

`google.protobuf.Int64Value{value: 1}` can be written, but its value is just a nullable number, not a message.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from devlet.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Kind,
    Type,
    list_of,
    map_of,
    object_type,
)

_TIME = {"seconds": INT, "nanos": INT}
_STRUCT = map_of(STRING, DYN)
_LIST = list_of(DYN)

_VALUE = {
    "null_value": INT,
    "number_value": DOUBLE,
    "string_value": STRING,
    "bool_value": BOOL,
    "struct_value": _STRUCT,
    "list_value": _LIST,
}

_WRAPPED = {
    "BoolValue": BOOL,
    "BytesValue": BYTES,
    "DoubleValue": DOUBLE,
    "FloatValue": DOUBLE,
    "Int32Value": INT,
    "Int64Value": INT,
    "StringValue": STRING,
    "UInt32Value": UINT,
    "UInt64Value": UINT,
}

_MESSAGES: dict[str, tuple[Type, dict[str, Type]]] = {
    "Any": (ANY, {"type_url": STRING, "value": BYTES}),
    "Duration": (DURATION, _TIME),
    "Empty": (object_type("google.protobuf.Empty"), {}),
    "ListValue": (_LIST, {"values": _LIST}),
    "Struct": (_STRUCT, {"fields": _STRUCT}),
    "Timestamp": (TIMESTAMP, _TIME),
    "Value": (DYN, _VALUE),
    **{name: (replace(inner, nullable=True), {"value": inner}) for name, inner in _WRAPPED.items()},
}

MESSAGES: Final[Mapping[str, Type]] = MappingProxyType(
    {f"google.protobuf.{name}": t for name, (t, _) in _MESSAGES.items()}
)
"""The CEL type of each message, by its full name."""

FIELDS: Final[Mapping[str, Mapping[str, Type]]] = MappingProxyType(
    {f"google.protobuf.{name}": fields for name, (_, fields) in _MESSAGES.items()}
)

ENUM_VALUES: Final[Mapping[str, int]] = MappingProxyType({"google.protobuf.NullValue.NULL_VALUE": 0})

_NAMES = {
    Kind.ANY: "Any",
    Kind.DURATION: "Duration",
    Kind.DYN: "Value",
    Kind.NULL: "NullValue",
    Kind.TIMESTAMP: "Timestamp",
    Kind.BOOL: "BoolValue",
    Kind.BYTES: "BytesValue",
    Kind.DOUBLE: "DoubleValue",
    Kind.INT: "Int64Value",
    Kind.STRING: "StringValue",
    Kind.UINT: "UInt64Value",
}
_ALWAYS = {Kind.ANY, Kind.DURATION, Kind.DYN, Kind.NULL, Kind.TIMESTAMP}


def message_name(t: Type) -> str | None:
    """Return the message that creates a value of this type; None if there is none."""
    if t.nullable or t.kind in _ALWAYS:
        return f"google.protobuf.{_NAMES[t.kind]}"
    if t == _LIST:
        return "google.protobuf.ListValue"
    return "google.protobuf.Struct" if t == _STRUCT else None
