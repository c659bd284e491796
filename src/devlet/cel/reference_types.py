"""The names of the reference's own types in some of its messages: `got 'types.Int', expected iterable type`."""

from devlet.cel.types import Type, type_name
from devlet.cel.values import Duration, Optional, Timestamp, Uint, Value

_BY_CLASS = {
    type(None): "types.Null",
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Optional: "*types.Optional",
    Type: "*types.Type",
}

_BY_NAME = {"kubernetes.NamedFormat": "*cel.Format"}


def go_type(value: Value) -> str:
    if name := _BY_CLASS.get(type(value)):
        return name
    if isinstance(value, list | tuple):
        return "*types.baseList"
    if isinstance(value, dict):
        return "*types.baseMap"
    full = type_name(value)
    return _BY_NAME.get(full, f"cel.{full.rpartition('.')[2]}")
