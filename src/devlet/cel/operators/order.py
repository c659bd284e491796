"""The order of values: `<`, `<=`, `>` and `>=`. Numbers of different types can be compared."""

from typing import Final

from devlet.cel.operators.errors import NO_OVERLOAD
from devlet.cel.values import CelError, Duration, Timestamp, Uint, Value

NUMBERS: Final = frozenset((int, Uint, float))

ORDERED: Final = frozenset((bool, int, Uint, str, bytes, Duration, Timestamp))
"""The types whose values Python orders as CEL does."""


def compare(a: Value, b: Value, function: str = "_<_") -> int:
    """Return -1, 0 or 1; `function` is the operator that errors name."""
    kind = type(a)
    if kind in ORDERED and kind is type(b):
        return int(a > b) - int(a < b)
    if kind is float and a != a:
        raise CelError("NaN values cannot be ordered")
    if kind in NUMBERS and type(b) in NUMBERS:
        if b != b:
            raise CelError("NaN values cannot be ordered")
        return compare_numbers(a, b)
    raise CelError(NO_OVERLOAD if kind in ORDERED or kind is float else f"{NO_OVERLOAD}: {function}")


def less(a: Value, b: Value) -> bool:
    return compare(a, b, "_<_") < 0


def less_equals(a: Value, b: Value) -> bool:
    return compare(a, b, "_<=_") <= 0


def greater(a: Value, b: Value) -> bool:
    return compare(a, b, "_>_") > 0


def greater_equals(a: Value, b: Value) -> bool:
    return compare(a, b, "_>=_") >= 0


def compare_numbers(a: Value, b: Value) -> int:
    """Compare as the reference does: an integer compared with a double is rounded to a double first."""
    if float in (type(a), type(b)):
        a, b = float(a), float(b)
    return int(a > b) - int(a < b)
