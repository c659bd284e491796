"""The operators of the language on values: equality, order, arithmetic, index, `in`, `size`, and field access.

Python's own operators are wrong here: `1 == True`, `-7 // 2`, `{1: x}[True]` and unlimited integers follow Python's
rules, not those of CEL. Equality reproduces quirks of the reference: a library value (Quantity, Semver) on the left of
another type is an error, on the right it is false, and inside a list or map that error counts as equal.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from devlet.cel.amounts import Sum
from devlet.cel.reference_types import go_type
from devlet.cel.texts import key_text
from devlet.cel.types import MAP, Type, runtime_type, type_name
from devlet.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    CelError,
    CostExceeded,
    Duration,
    Optional,
    Timestamp,
    Uint,
    Value,
)
from devlet.objects.values.quantity import Quantity

NO_OVERLOAD: Final = "no such overload"

TIMESTAMP_MIN: Final = -62135596800 * 10**9
TIMESTAMP_MAX: Final = 253402300800 * 10**9 - 1

ABSENT: Final = object()
"""The result of `find` if there is no element; never a value of an expression."""

TOO_MUCH: Final = "operation cancelled: actual cost limit exceeded"

# A limit of devlet: the reference computes without limit what it does not count. Far beyond what an expression with a
# budget of a million needs.
_LARGEST: Final = 1_000_000

_SECOND = 10**9
_NUMBERS = frozenset((int, Uint, float))
_ORDERED = frozenset((bool, int, Uint, str, bytes, Duration, Timestamp))
_PLAIN = _ORDERED | {float, type(None)}
_RECEIVERS = frozenset((str, Duration, Timestamp))
_KEYS = frozenset((str, int, Uint, bool, float))


class Joined(list[Value]):
    """The result of `+` on two lists. Only here is an element that cannot be compared an error."""

    __slots__ = ()


_CONTAINERS = frozenset((list, tuple, dict, Joined, Optional))


# Equality


def equal(a: Value, b: Value) -> bool:
    """Implement `a == b`."""
    kind = type(a)
    if kind is type(b) and kind in _PLAIN:
        return bool(a == b)
    if a is None or b is None:
        return a is b
    if kind in _CONTAINERS and min(_weight(a, {}), _weight(b, {})) > _LARGEST:
        raise CostExceeded(TOO_MUCH)
    return _equal(a, b)


def check_weight(value: Value) -> None:
    """Check the work of reading everything in a value. Raises CostExceeded."""
    if type(value) in _CONTAINERS and _weight(value, {}) > _LARGEST:
        raise CostExceeded(TOO_MUCH)


def _weight(value: Value, known: dict[int, int]) -> int:
    """Return how many values a comparison may visit. A list may contain another one many times, so each is weighed
    once."""
    if type(value) not in _CONTAINERS:
        return 1
    found = known.get(id(value))
    if found is None:
        parts = value.values() if isinstance(value, dict) else (value.value,) if type(value) is Optional else value
        found = 1 + (len(parts) if _is_flat(parts) else sum(_weight(part, known) for part in parts))
        known[id(value)] = found
    return found


def _is_flat(parts: Iterable[Value]) -> bool:
    return _CONTAINERS.isdisjoint(map(type, parts))


def not_equal(a: Value, b: Value) -> bool:
    """Implement `a != b`. It is never an error: values that cannot be compared are not equal."""
    try:
        return not equal(a, b)
    except CostExceeded:
        raise
    except CelError:
        return True


def _equal(a: Value, b: Value) -> bool:
    kind = type(a)
    if kind in _NUMBERS:
        return type(b) in _NUMBERS and a == a and b == b and _compare_numbers(a, b) == 0
    if kind in _PLAIN:
        return kind is type(b) and bool(a == b)
    if isinstance(a, list | tuple):
        return isinstance(b, list | tuple) and len(a) == len(b) and _equal_lists(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and _equal_maps(a, b)
    if isinstance(a, Optional):
        return isinstance(b, Optional) and _equal_optionals(a, b)
    if isinstance(a, Type):
        return isinstance(b, Type) and a.type_name == b.type_name
    if isinstance(a, Quantity):
        return _equal_quantities(a, b)
    if type(b) is kind:
        return bool(a == b)
    if runtime_type(a) is MAP:  # a host object
        return False
    raise CelError(NO_OVERLOAD)


def _equal_quantities(a: Quantity, b: Value) -> bool:
    if not isinstance(b, Quantity) or isinstance(b, Sum):
        raise CelError(NO_OVERLOAD)
    return a.nano == b.nano


def _equal_lists(a: Sequence[Value], b: Sequence[Value]) -> bool:
    same = all(map(_not_unequal, a, b))
    if same and isinstance(a, Joined):
        return all(map(_same, a, b))
    return same


def _not_unequal(a: Value, b: Value) -> bool:
    try:
        return _same(a, b)
    except CostExceeded:
        raise
    except CelError:
        return True


def _same(a: Value, b: Value) -> bool:
    return a is b if a is None or b is None else _equal(a, b)


def _equal_maps(a: dict[Value, Value], b: dict[Value, Value]) -> bool:
    if len(a) != len(b):
        return False
    for key, value in a.items():
        other = find(b, key)
        if other is ABSENT or not _not_unequal(value, other):
            return False
    return True


def _equal_optionals(a: Optional, b: Optional) -> bool:
    if not (a.has_value and b.has_value):
        return a.has_value == b.has_value
    return _equal(a.value, b.value)


# Order


def compare(a: Value, b: Value, function: str = "_<_") -> int:
    """Return -1, 0 or 1; `function` is the operator that errors name."""
    kind = type(a)
    if kind in _ORDERED and kind is type(b):
        return int(a > b) - int(a < b)
    if kind is float and a != a:
        raise CelError("NaN values cannot be ordered")
    if kind in _NUMBERS and type(b) in _NUMBERS:
        if b != b:
            raise CelError("NaN values cannot be ordered")
        return _compare_numbers(a, b)
    raise CelError(NO_OVERLOAD if kind in _ORDERED or kind is float else f"{NO_OVERLOAD}: {function}")


def less(a: Value, b: Value) -> bool:
    return compare(a, b, "_<_") < 0


def less_equals(a: Value, b: Value) -> bool:
    return compare(a, b, "_<=_") <= 0


def greater(a: Value, b: Value) -> bool:
    return compare(a, b, "_>_") > 0


def greater_equals(a: Value, b: Value) -> bool:
    return compare(a, b, "_>=_") >= 0


def _compare_numbers(a: Value, b: Value) -> int:
    """Compare as the reference does: an integer compared with a double is rounded to a double first."""
    if float in (type(a), type(b)):
        a, b = float(a), float(b)
    return int(a > b) - int(a < b)


# Arithmetic


def add(a: Value, b: Value) -> Value:
    kind = type(a)
    if kind in (str, bytes, float):
        return a + b if type(b) is kind else _no_overload()
    if kind is int or kind is Uint:
        return _checked(kind, a + b) if type(b) is kind else _no_overload()
    if isinstance(a, list | tuple):
        return _concatenation(a, b) if isinstance(b, list | tuple) else _no_overload()
    if kind is Duration and type(b) is Duration:
        return Duration(_int(a.nanoseconds + b.nanoseconds))
    if {kind, type(b)} == {Duration, Timestamp}:
        return _moved(a, b) if kind is Timestamp else _moved(b, a)
    raise unsupported("_+_", a, kind in (Duration, Timestamp))


def subtract(a: Value, b: Value) -> Value:
    kind = type(a)
    if kind is float:
        return a - b if type(b) is float else _no_overload()
    if kind is int or kind is Uint:
        return _checked(kind, int(a) - int(b)) if type(b) is kind else _no_overload()
    if kind is Duration and type(b) is Duration:
        return Duration(_int(a.nanoseconds - b.nanoseconds))
    if kind is Timestamp and type(b) is Duration:
        return _moved(a, negate(b))
    if kind is Timestamp and type(b) is Timestamp:
        return _difference(a, b)
    raise unsupported("_-_", a, kind in (Duration, Timestamp))


def multiply(a: Value, b: Value) -> Value:
    kind = type(a)
    if kind not in _NUMBERS:
        raise unsupported("_*_", a)
    if type(b) is not kind:
        return _no_overload()
    return a * b if kind is float else _checked(kind, a * b)


def divide(a: Value, b: Value) -> Value:
    """Divide. Integers are truncated towards zero; doubles divided by zero are infinite or NaN."""
    kind = type(a)
    if kind not in _NUMBERS:
        raise unsupported("_/_", a)
    if type(b) is not kind:
        return _no_overload()
    if kind is float:
        return a / b if b else _divided_by_zero(a, b)
    if b == 0:
        raise CelError("division by zero")
    return _checked(kind, _quotient(a, b))


def modulo(a: Value, b: Value) -> Value:
    """Return the remainder with the sign of the dividend."""
    kind = type(a)
    if kind is not int and kind is not Uint:
        raise unsupported("_%_", a)
    if type(b) is not kind:
        return _no_overload()
    if b == 0:
        raise CelError("modulus by zero")
    _checked(kind, _quotient(a, b))
    return _checked(kind, a - b * _quotient(a, b))


def negate(a: Value) -> Value:
    kind = type(a)
    if kind is int:
        return _int(-a)
    if kind is float:
        return -a
    if kind is Duration:
        return Duration(_int(-a.nanoseconds))
    raise unsupported("-_", a, kind is bool)


def logical_not(a: Value) -> bool:
    return not a if type(a) is bool else _no_overload()


def _no_overload() -> Value:
    raise CelError(NO_OVERLOAD)


def unsupported(function: str, left: Value, has_operator: bool = False) -> CelError:
    """Return the error. The reference names the operator only if the type on the left has neither it nor methods."""
    short = has_operator or type(left) in _RECEIVERS
    return CelError(NO_OVERLOAD if short else f"{NO_OVERLOAD}: {function}")


def _checked(kind: type, number: int) -> int:
    if kind is int:
        return _int(number)
    if not 0 <= number <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(number)


def _int(number: int) -> int:
    if not INT_MIN <= number <= INT_MAX:
        raise CelError("integer overflow")
    return number


def _quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _divided_by_zero(a: float, b: float) -> float:
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _concatenation(a: Sequence[Value], b: Sequence[Value]) -> Sequence[Value]:
    if len(a) + len(b) > _LARGEST:
        raise CostExceeded(TOO_MUCH)
    return b if not a else a if not b else Joined((*a, *b))


def timestamp(nanoseconds: int, offset: int = 0) -> Timestamp:
    """Return a timestamp from the year 1 to the year 9999, or raise an error."""
    if not TIMESTAMP_MIN <= nanoseconds <= TIMESTAMP_MAX:
        raise CelError("timestamp overflow")
    return Timestamp(nanoseconds, offset)


def _moved(a: Timestamp, b: Duration) -> Timestamp:
    return timestamp(a.nanoseconds + b.nanoseconds, a.offset)


def _difference(a: Timestamp, b: Timestamp) -> Duration:
    """Subtract. Whole seconds and the rest are checked separately, as in the reference."""
    (a_seconds, a_rest), (b_seconds, b_rest) = divmod(a.nanoseconds, _SECOND), divmod(b.nanoseconds, _SECOND)
    return Duration(_int(_int((a_seconds - b_seconds) * _SECOND) + a_rest - b_rest))


# Containers


def size(value: Value) -> int:
    """Return the number of code points of a string, or of bytes, elements or entries."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    raise unsupported("size", value)


def contains(element: Value, container: Value) -> bool:
    """Implement `element in container`. A value that cannot be compared is not in it."""
    if isinstance(container, dict):
        return _has_key(container, element)
    if isinstance(container, list | tuple):
        return any(not not_equal(element, other) for other in container)
    raise CelError(NO_OVERLOAD)


def find(container: Value, key: Value) -> Value:
    """Return the element or ABSENT. A map with defaults has every key here, though not for `in`."""
    if isinstance(container, dict):
        return container[key] if _has_key(container, key) else _default(container, key)
    if isinstance(container, list | tuple):
        position = list_index(key)
        return container[position] if 0 <= position < len(container) else ABSENT
    return ABSENT


def index(container: Value, key: Value) -> Value:
    """Implement `container[key]`; for an optional the result is an optional."""
    if type(key) not in _KEYS:
        raise CelError(f"invalid qualifier type: {go_type(key)}")
    if type(container) is Optional:
        return optional_index(container, key)
    value = find(container, key)
    if value is ABSENT:
        raise CelError(f"{_what_is_missing(container)}: {key_text(key)}")
    return value


def optional_index(container: Value, key: Value) -> Optional:
    """Implement `container[?key]`."""
    if type(container) is Optional:
        return optional_index(container.value, key) if container.has_value else NONE
    if type(key) not in _KEYS:
        raise CelError(f"invalid qualifier type: {go_type(key)}")
    value = find(container, key)
    return NONE if value is ABSENT else Optional(value)


def select(container: Value, field: str, attribute: str = "") -> Value:
    """Implement `container.field`; `attribute` is the field's name in Python if the container is a host object."""
    if attribute and not isinstance(container, dict | Optional):
        return getattr(container, attribute)
    if type(container) is Optional:
        return optional_select(container, field, attribute)
    return index(container, field)


def optional_select(container: Value, field: str, attribute: str = "") -> Optional:
    """Implement `container.?field`."""
    if type(container) is Optional:
        return optional_select(container.value, field, attribute) if container.has_value else NONE
    if attribute and not isinstance(container, dict):
        return Optional(getattr(container, attribute))
    return optional_index(container, field)


def has(container: Value, field: str, attribute: str = "") -> bool:
    """Implement `has(container.field)`. For values without fields it is false; only for a list is it an error."""
    return optional_select(container, field, attribute).has_value


def list_index(key: Value) -> int:
    """Return the index for an integer of any type; it may be out of range."""
    if type(key) is int:
        return key
    if type(key) is float:
        if math.isfinite(key) and key == int(key) and INT_MIN < key < INT_MAX:
            return int(key)
        raise CelError(f"unsupported index value {key_text(key)} in list")
    if type(key) is Uint:
        if key <= INT_MAX:
            return int(key)
        raise CelError(f"unsupported index value {key_text(key)} in list")
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


def _has_key(container: dict[Value, Value], key: Value) -> bool:
    """Return whether the key exists. Python treats 1, 1.0 and True as one key, CEL does not: the type of the stored key
    decides."""
    kind = type(key)
    if kind is str:
        return key in container
    if kind not in _KEYS:
        return False
    return key in container and any(stored == key and _same_key(type(stored), key) for stored in container)


def _same_key(stored: type, key: Value) -> bool:
    kind = type(key)
    if bool in (stored, kind):
        return stored is kind
    return stored is not float or kind is float


def _default(container: dict[Value, Value], key: Value) -> Value:
    missing: Callable[[dict[Value, Value], Value], Value] | None = getattr(type(container), "__missing__", None)
    return missing(container, key) if missing else ABSENT


def _what_is_missing(container: Value) -> str:
    return "index out of bounds" if isinstance(container, list | tuple) else "no such key"
