"""`int("5")`, `string(1.5)`, `type(x)`, `dyn(x)` and the other functions named after types.

Strings are parsed strictly: Python's `int()` and `float()` also accept spaces, underscores and digits of other
scripts.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Final

from devlet.cel.functions import UNBOUNDED, CallEstimate, Function, Library, Overload, Range, SizedNode
from devlet.cel.library.ranges import STRING_FACTOR, scaled, scan_cost, size_of
from devlet.cel.library.times import duration_text, parse_duration, parse_timestamp, timestamp_text
from devlet.cel.texts import double_text
from devlet.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    runtime_type,
    type_name,
    type_of,
)
from devlet.cel.values import INT_MAX, INT_MIN, UINT_MAX, CelError, Duration, Timestamp, Uint, Value, timestamp

_integer = re.compile(r"[+-]?[0-9]{1,4000}+").fullmatch
_natural = re.compile(r"[0-9]{1,4000}+").fullmatch
_digits = "[0-9]++(?:_[0-9]++)*+"
_decimal = re.compile(
    rf"[+-]?(?:{_digits}(?:\.(?:{_digits})?)?|\.{_digits})(?:[eE][+-]?{_digits})?", re.ASCII
).fullmatch
_hex_digits = "[0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+"
_hexadecimal = re.compile(
    rf"[+-]?0[xX]_?(?:{_hex_digits}(?:\.(?:{_hex_digits})?)?|\.{_hex_digits})[pP][+-]?{_digits}"
).fullmatch
_infinite = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE).fullmatch

_BOOLS: Final = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


def _failed(value: Value, target: Type) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{target.type_name}'")


def string_to_int(text: str) -> int:
    if _integer(text) and INT_MIN <= int(text) <= INT_MAX:
        return int(text)
    raise _failed(text, INT)


def string_to_uint(text: str) -> Uint:
    if _natural(text) and int(text) <= UINT_MAX:
        return Uint(text)
    raise _failed(text, UINT)


def string_to_double(text: str) -> float:
    if _decimal(text):
        number = float(text.replace("_", ""))
    elif _hexadecimal(text):
        number = _from_hexadecimal(text.replace("_", ""))
    elif text.lower() == "nan":
        return math.nan
    elif match := _infinite(text):
        return -math.inf if match[1] == "-" else math.inf
    else:
        raise _failed(text, DOUBLE)
    if math.isinf(number):
        raise _failed(text, DOUBLE)
    return number


def _from_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return math.inf


def string_to_bool(text: str) -> bool:
    if (value := _BOOLS.get(text)) is None:
        raise _failed(text, BOOL)
    return value


def string_to_duration(text: str) -> Duration:
    if (value := parse_duration(text)) is None:
        raise _failed(text, DURATION)
    return value


def string_to_timestamp(text: str) -> Timestamp:
    if (value := parse_timestamp(text)) is None:
        raise _failed(text, TIMESTAMP)
    return value


def int_to_duration(number: int) -> Duration:
    """Fail: the reference declares this conversion, but does not implement it."""
    raise _failed(number, DURATION)


def double_to_int(number: float) -> int:
    if math.isnan(number) or not -(2.0**63) < number < 2.0**63:
        raise CelError("integer overflow")
    return int(number)


def double_to_uint(number: float) -> Uint:
    if math.isnan(number) or not 0 <= number < 2.0**64:
        raise CelError("unsigned integer overflow")
    return Uint(number)


def int_to_uint(number: int) -> Uint:
    if number < 0:
        raise CelError("unsigned integer overflow")
    return Uint(number)


def uint_to_int(number: Uint) -> int:
    if number > INT_MAX:
        raise CelError("integer overflow")
    return int(number)


def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def string_to_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def to_string(value: Value) -> str:
    """Return `string(x)`, for all types that support it."""
    if isinstance(value, str):
        return value
    if isinstance(value, Type):
        return value.type_name
    convert = _TO_STRING.get(type(value))
    if convert is None:
        raise _failed(value, STRING)
    return convert(value)


_TO_STRING: Final[dict[type, Callable[[Value], str]]] = {
    bool: lambda value: "true" if value else "false",
    bytes: bytes_to_string,
    float: double_text,
    Duration: duration_text,
    int: str,
    Timestamp: timestamp_text,
    Uint: lambda value: str(int(value)),
    type(None): lambda value: "null",
}


def _same(value: Value) -> Value:
    return value


def _estimate_to_bytes(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    """Estimate the cost. The reference's product wraps around if the size is unknown."""
    size = size_of(args[0])
    return CallEstimate(scaled(size, STRING_FACTOR), Range(size.min, size.max * 4 & UNBOUNDED))


def _estimate_to_string(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    size = size_of(args[0])
    return CallEstimate(scaled(size, STRING_FACTOR), Range(size.min // 4, size.max))


def _function(name: str, result: Type, *overloads: tuple[str, Type, Callable[..., Value]]) -> Function:
    return Function(name, tuple(Overload(id, (source,), result, call) for id, source, call in overloads))


LIBRARY: Final = Library(
    "conversions",
    (
        Function("type", (Overload("type", (A,), type_of(A), runtime_type),), dispatch=runtime_type),
        Function("dyn", (Overload("to_dyn", (A,), DYN, _same),), dispatch=_same),
        _function("bool", BOOL, ("bool_to_bool", BOOL, _same), ("string_to_bool", STRING, string_to_bool)),
        Function(
            "bytes",
            (
                Overload("bytes_to_bytes", (BYTES,), BYTES, _same),
                Overload(
                    "string_to_bytes", (STRING,), BYTES, string_to_bytes, estimate=_estimate_to_bytes, cost=scan_cost()
                ),
            ),
        ),
        _function(
            "double",
            DOUBLE,
            ("double_to_double", DOUBLE, _same),
            ("int64_to_double", INT, float),
            ("string_to_double", STRING, string_to_double),
            ("uint64_to_double", UINT, float),
        ),
        _function(
            "duration",
            DURATION,
            ("duration_to_duration", DURATION, _same),
            ("int64_to_duration", INT, int_to_duration),
            ("string_to_duration", STRING, string_to_duration),
        ),
        _function(
            "int",
            INT,
            ("int64_to_int64", INT, _same),
            ("double_to_int64", DOUBLE, double_to_int),
            ("duration_to_int64", DURATION, lambda value: value.nanoseconds),
            ("string_to_int64", STRING, string_to_int),
            ("timestamp_to_int64", TIMESTAMP, lambda value: value.nanoseconds // 10**9),
            ("uint64_to_int64", UINT, uint_to_int),
        ),
        Function(
            "string",
            (
                Overload("string_to_string", (STRING,), STRING, _same),
                Overload("bool_to_string", (BOOL,), STRING, to_string),
                Overload(
                    "bytes_to_string", (BYTES,), STRING, to_string, estimate=_estimate_to_string, cost=scan_cost()
                ),
                Overload("double_to_string", (DOUBLE,), STRING, to_string),
                Overload("duration_to_string", (DURATION,), STRING, to_string),
                Overload("int64_to_string", (INT,), STRING, to_string),
                Overload("timestamp_to_string", (TIMESTAMP,), STRING, to_string),
                Overload("uint64_to_string", (UINT,), STRING, to_string),
            ),
        ),
        _function(
            "timestamp",
            TIMESTAMP,
            ("timestamp_to_timestamp", TIMESTAMP, _same),
            ("int64_to_timestamp", INT, lambda seconds: timestamp(seconds * 10**9)),
            ("string_to_timestamp", STRING, string_to_timestamp),
        ),
        _function(
            "uint",
            UINT,
            ("uint64_to_uint64", UINT, _same),
            ("double_to_uint64", DOUBLE, double_to_uint),
            ("int64_to_uint64", INT, int_to_uint),
            ("string_to_uint64", STRING, string_to_uint),
        ),
    ),
)
