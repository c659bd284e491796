"""Values written as protobuf messages: `google.protobuf.Int64Value{value: 1}` is simply 1."""

from collections.abc import Mapping
from typing import Final

from devlet.cel.values import TIMESTAMP_MAX, TIMESTAMP_MIN, CelError, Duration, Timestamp, Uint, Value

_WRAPPED: Final[Mapping[str, Value]] = {
    "BoolValue": False,
    "BytesValue": b"",
    "DoubleValue": 0.0,
    "FloatValue": 0.0,
    "Int32Value": 0,
    "Int64Value": 0,
    "StringValue": "",
    "UInt32Value": Uint(0),
    "UInt64Value": Uint(0),
}
_LIMITS: Final = {"Int32Value": (-(2**31), 2**31 - 1), "UInt32Value": (0, 2**32 - 1)}


def make(name: str, fields: Mapping[str, Value]) -> Value:
    """Return the value of a message literal of the named type."""
    package, _, short = name.rpartition(".")
    if package == "google.protobuf":
        if short in _WRAPPED:
            return _wrapped(short, fields.get("value"))
        match short:
            case "Duration":
                return Duration(_nanoseconds(fields))
            case "Timestamp":
                return _timestamp(_nanoseconds(fields))
            case "ListValue":
                return fields.get("values", [])
            case "Struct":
                return fields.get("fields", {})
            case "Value":
                return _of_value(fields)
    raise CelError(f"unknown type '{name}'")


def _wrapped(name: str, value: Value) -> Value:
    if value is None:
        return _WRAPPED[name]
    if type(value) is not type(_WRAPPED[name]):
        raise CelError("unsupported field type")
    low, high = _LIMITS.get(name, (None, None))
    if low is not None and high is not None and not low <= value <= high:
        raise CelError("integer overflow" if low else "unsigned integer overflow")
    return value


def _nanoseconds(fields: Mapping[str, Value]) -> int:
    return int(fields.get("seconds", 0)) * 10**9 + int(fields.get("nanos", 0))


def _timestamp(nanoseconds: int) -> Timestamp:
    if not TIMESTAMP_MIN <= nanoseconds <= TIMESTAMP_MAX:
        raise CelError("timestamp overflow")
    return Timestamp(nanoseconds)


def _of_value(fields: Mapping[str, Value]) -> Value:
    """Return the value of a `Value` message, of which at most one field is set."""
    for field, value in fields.items():
        return None if field == "null_value" else value
    return None
