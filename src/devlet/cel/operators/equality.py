"""Equality, with the quirks of the reference.

A library value (Quantity, Semver) on the left of another type is an error, on the right it is false, and inside a list
or map that error counts as equal.
"""

from collections.abc import Sequence

from devlet.cel.amounts import Sum
from devlet.cel.operators.errors import NO_OVERLOAD
from devlet.cel.operators.lookup import ABSENT, find
from devlet.cel.operators.order import NUMBERS, ORDERED, compare_numbers
from devlet.cel.operators.weight import CONTAINERS, LARGEST, TOO_MUCH, Joined, weight
from devlet.cel.types import MAP, Type, runtime_type
from devlet.cel.values import CelError, CostExceeded, Optional, Value
from devlet.objects.values.quantity import Quantity

_PLAIN = ORDERED | {float, type(None)}


def equal(a: Value, b: Value) -> bool:
    """Implement `a == b`."""
    kind = type(a)
    if kind is type(b) and kind in _PLAIN:
        return bool(a == b)
    if a is None or b is None:
        return a is b
    if kind in CONTAINERS and min(weight(a, {}), weight(b, {})) > LARGEST:
        raise CostExceeded(TOO_MUCH)
    return _equal(a, b)


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
    if kind in NUMBERS:
        return type(b) in NUMBERS and a == a and b == b and compare_numbers(a, b) == 0
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
