"""Arithmetic on numbers and times, `+` on strings, bytes and lists, and `!`.

Integers have 64 bits; a result that does not fit is an error. Numbers of different types cannot be combined.
"""

import math
from collections.abc import Sequence

from devlet.cel.operators.errors import no_overload, unsupported
from devlet.cel.operators.order import NUMBERS
from devlet.cel.operators.weight import LARGEST, TOO_MUCH, Joined
from devlet.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelError,
    CostExceeded,
    Duration,
    Timestamp,
    Uint,
    Value,
    timestamp,
)

_SECOND = 10**9


def add(a: Value, b: Value) -> Value:
    kind = type(a)
    if kind in (str, bytes, float):
        return a + b if type(b) is kind else no_overload()
    if kind is int or kind is Uint:
        return _checked(kind, a + b) if type(b) is kind else no_overload()
    if isinstance(a, list | tuple):
        return _concatenation(a, b) if isinstance(b, list | tuple) else no_overload()
    if kind is Duration and type(b) is Duration:
        return Duration(_int(a.nanoseconds + b.nanoseconds))
    if {kind, type(b)} == {Duration, Timestamp}:
        return _moved(a, b) if kind is Timestamp else _moved(b, a)
    raise unsupported("_+_", a, kind in (Duration, Timestamp))


def subtract(a: Value, b: Value) -> Value:
    kind = type(a)
    if kind is float:
        return a - b if type(b) is float else no_overload()
    if kind is int or kind is Uint:
        return _checked(kind, int(a) - int(b)) if type(b) is kind else no_overload()
    if kind is Duration and type(b) is Duration:
        return Duration(_int(a.nanoseconds - b.nanoseconds))
    if kind is Timestamp and type(b) is Duration:
        return _moved(a, negate(b))
    if kind is Timestamp and type(b) is Timestamp:
        return _difference(a, b)
    raise unsupported("_-_", a, kind in (Duration, Timestamp))


def multiply(a: Value, b: Value) -> Value:
    kind = type(a)
    if kind not in NUMBERS:
        raise unsupported("_*_", a)
    if type(b) is not kind:
        return no_overload()
    return a * b if kind is float else _checked(kind, a * b)


def divide(a: Value, b: Value) -> Value:
    """Divide. Integers are truncated towards zero; doubles divided by zero are infinite or NaN."""
    kind = type(a)
    if kind not in NUMBERS:
        raise unsupported("_/_", a)
    if type(b) is not kind:
        return no_overload()
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
        return no_overload()
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
    return not a if type(a) is bool else no_overload()


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
    if len(a) + len(b) > LARGEST:
        raise CostExceeded(TOO_MUCH)
    return b if not a else a if not b else Joined((*a, *b))


def _moved(a: Timestamp, b: Duration) -> Timestamp:
    return timestamp(a.nanoseconds + b.nanoseconds, a.offset)


def _difference(a: Timestamp, b: Timestamp) -> Duration:
    """Subtract. Whole seconds and the rest are checked separately, as in the reference."""
    (a_seconds, a_rest), (b_seconds, b_rest) = divmod(a.nanoseconds, _SECOND), divmod(b.nanoseconds, _SECOND)
    return Duration(_int(_int((a_seconds - b_seconds) * _SECOND) + a_rest - b_rest))
