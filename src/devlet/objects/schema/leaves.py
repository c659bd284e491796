"""The scalar values of a Kubernetes document: what JSON may contain, and how it is written again.

Each converter takes a value other than null and returns it as Go would write it, or raises `Mismatch`. The message's
plan (`objects.schema.shape`) adds the path to the error, and handles null.
"""

import binascii
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from devlet.errors import InvalidInput
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.timestamps import format_micro_time, format_time, parse_micro_time, parse_time

Unknown = list[str]  # collects unknown keys
Convert = Callable[[Any, Unknown], Any]

ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)  # Go's unset time
MAX_DEPTH = 100  # nesting of values without a schema

_STRINGS = {str}
_INT64 = 1 << 63


class Mismatch(Exception):
    """The value does not have the expected type. Callers extend `path` from the value outward."""

    def __init__(self, value: object, expected: str, *, problem: str = "") -> None:
        self.path: list[str] = []
        self._problem = problem or f"cannot unmarshal {json_type(value)} into"
        self._expected = expected

    def text(self) -> str:
        path = "".join(reversed(self.path)).removeprefix(".")[:500]
        place = f"field {path}" if path else "the object"
        return f"json: {self._problem} {place} of type {self._expected}"


def json_type(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case None:
            return "null"
    return type(value).__name__


def string(value: Any, _: Unknown) -> str:
    if isinstance(value, str):
        return value
    raise Mismatch(value, "string")


def boolean(value: Any, _: Unknown) -> bool:
    if isinstance(value, bool):
        return value
    raise Mismatch(value, "bool")


def int32(value: Any, _: Unknown) -> int:
    return _integer(value, "int32", 1 << 31)


def int64(value: Any, _: Unknown) -> int:
    return _integer(value, "int64", _INT64)


def _integer(value: Any, name: str, bound: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Mismatch(value, name)
    if not -bound <= value < bound:
        raise Mismatch(value, name, problem="the number is out of range for")
    return value


def base64(value: Any, _: Unknown) -> str:
    if not isinstance(value, str):
        raise Mismatch(value, "base64 string")
    try:
        data = binascii.a2b_base64(value.replace("\r", "").replace("\n", ""), strict_mode=True)
    except ValueError:  # binascii.Error, or characters beyond ASCII
        raise Mismatch(value, "base64 string", problem="illegal base64 data in") from None
    return binascii.b2a_base64(data, newline=False).decode()


def quantity(value: Any, _: Unknown) -> str:
    """Return the canonical form as a string: 1000m becomes 1."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Mismatch(value, "quantity")
    try:
        return canonical_quantity(value.strip() if isinstance(value, str) else value)
    except InvalidInput as e:
        raise Mismatch(value, "quantity", problem=f"{e} in") from None


@lru_cache(16384, typed=True)
def canonical_quantity(value: str | int | float) -> str:
    return str(Quantity.parse(value))


def int_or_string(value: Any, unknown: Unknown) -> int | str:
    return value if isinstance(value, str) else int32(value, unknown)


def time(value: Any, _: Unknown) -> str | None:
    if isinstance(value, str):
        return _time(value)
    raise Mismatch(value, "RFC 3339 time")


def micro_time(value: Any, _: Unknown) -> str | None:
    if not isinstance(value, str):
        raise Mismatch(value, "RFC 3339 time")
    moment = _moment(value, parse_micro_time)
    return None if moment == ZERO_TIME else format_micro_time(moment)


@lru_cache(4096)  # an object has several times, and those within one second are equal
def _time(value: str) -> str | None:
    moment = _moment(value, parse_time)
    return None if moment == ZERO_TIME else format_time(moment)


def _moment(value: str, parse: Callable[[object], datetime]) -> datetime:
    try:
        return parse(value)
    except InvalidInput:
        raise Mismatch(value, "RFC 3339 time", problem=f'cannot parse "{value[:64]}" in') from None


def anything(value: Any, _: Unknown) -> Any:
    """Copy a value that has no schema."""
    return _copy(value, MAX_DEPTH)


def _copy(value: Any, depth: int) -> Any:
    if isinstance(value, (dict, list)) and not depth:
        raise Mismatch(value, "JSON", problem=f"nested deeper than {MAX_DEPTH} levels in")
    if isinstance(value, dict):
        return {key(k): _copy(v, depth - 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_copy(v, depth - 1) for v in value]
    if isinstance(value, int) and not -_INT64 <= value < 2 * _INT64:
        return _as_float(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise Mismatch(value, "JSON")


def _as_float(value: int) -> float:
    """Return a whole number that does not fit 64 bits as Go reads it."""
    try:
        return float(value)
    except OverflowError:
        raise Mismatch(value, "float64", problem="the number is out of range for") from None


def key(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Mismatch(value, "string", problem=f"{json_type(value)} as a key in")


def list_of(convert: Convert, zero: Callable[[], Any], *, of_strings: bool = False) -> Convert:
    def convert_all(value: Any, unknown: Unknown) -> list[Any]:
        if not isinstance(value, list):
            raise Mismatch(value, "array")
        if of_strings and set(map(type, value)) == _STRINGS:
            return value[:]
        made: list[Any] = []
        try:
            for part in value:
                made.append(zero() if part is None else convert(part, unknown))  # noqa: PERF401 (len(made) is the place)
        except Mismatch as wrong:
            wrong.path.append(f"[{len(made)}]")
            raise
        return made

    return convert_all


def map_of(convert: Convert, zero: Callable[[], Any], *, of_strings: bool = False) -> Convert:
    def convert_all(value: Any, unknown: Unknown) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Mismatch(value, "object")
        if set(map(type, value)) - _STRINGS:
            raise Mismatch(value, "object with strings as keys")
        if of_strings and set(map(type, value.values())) == _STRINGS:
            return value.copy()
        made: dict[str, Any] = {}
        name = ""
        try:
            for name, part in value.items():
                made[name] = zero() if part is None else convert(part, unknown)
        except Mismatch as wrong:
            wrong.path.append(f".{name}")
            raise
        return made

    return convert_all


# By the name of the special form, or else of the scalar.
CONVERT: dict[str, Convert] = {
    "string": string,
    "bool": boolean,
    "int32": int32,
    "int64": int64,
    "bytes": base64,
    "quantity": quantity,
    "intorstring": int_or_string,
    "time": time,
    "microtime": micro_time,
    "rawextension": anything,
    "fieldsv1": anything,
    "items": list_of(string, str, of_strings=True),
}

# What Go writes for an unset value; null if there is no entry.
ZERO: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "quantity": "0", "intorstring": 0}
