"""Kubernetes' additions to lists: isSorted, sum, min, max, indexOf, lastIndexOf.

Values of different types in one list are an error for `sum` only. The other functions treat values that cannot be
ordered as sorted.
"""

from collections.abc import Callable, Sequence
from typing import Final

from devlet.cel.functions import CallEstimate, Function, Library, Overload, Range, SizedNode
from devlet.cel.library.lists import COMPARABLE
from devlet.cel.library.members import is_equal
from devlet.cel.library.ranges import ANY_SIZE, ONE, STRING_FACTOR, plus, scaled, size_of, times, traversal_cost
from devlet.cel.operators import NO_OVERLOAD, add, compare
from devlet.cel.types import BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT, A, Kind, Type, list_of
from devlet.cel.values import CelError, Duration, Timestamp, Uint, Value

_ORDERED = frozenset((int, Uint, float, bool, Duration, Timestamp, str, bytes))
_ZEROS: Final = ((INT, 0), (UINT, Uint(0)), (DOUBLE, 0.0), (DURATION, Duration(0)))


def _exceeds(a: Value, b: Value) -> bool:
    try:
        return compare(a, b) > 0
    except CelError:
        return False


def _require_order(values: Sequence[Value]) -> None:
    if any(type(value) not in _ORDERED for value in values):
        raise CelError(NO_OVERLOAD)


def _is_sorted(values: Sequence[Value]) -> bool:
    for i, value in enumerate(values):
        _require_order((value,))
        if i and _exceeds(values[i - 1], value):
            return False
    return True


def _sum(zero: Value) -> Callable[[Sequence[Value]], Value]:
    def call(values: Sequence[Value]) -> Value:
        total = zero
        for value in values:
            total = add(total, value)
        return total

    return call


def _min(values: Sequence[Value]) -> Value:
    _require_order(values)
    if not values:
        raise CelError("min called on empty list")
    least = values[0]
    for value in values[1:]:
        least = value if _exceeds(least, value) else least
    return least


def _max(values: Sequence[Value]) -> Value:
    _require_order(values)
    if not values:
        raise CelError("max called on empty list")
    greatest = values[0]
    for value in values[1:]:
        greatest = value if _is_below(greatest, value) else greatest
    return greatest


def _is_below(a: Value, b: Value) -> bool:
    try:
        return compare(a, b) < 0
    except CelError:
        return False


def _index_of(values: Sequence[Value], item: Value) -> int:
    return next((i for i, value in enumerate(values) if is_equal(value, item)), -1)


def _last_index_of(values: Sequence[Value], item: Value) -> int:
    return next((i for i in reversed(range(len(values))) if is_equal(values[i], item)), -1)


def _estimate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    """Estimate one unit for each element. Strings are also read, but their length is not known here."""
    if target is None:
        return None
    if not target.type.params:
        return CallEstimate(scaled(size_of(target), STRING_FACTOR))
    return CallEstimate(times(size_of(target), _element_cost(target.type.params[0])))


def _element_cost(element: Type) -> Range:
    if element.kind in (Kind.STRING, Kind.BYTES):
        return plus(ONE, scaled(ANY_SIZE, STRING_FACTOR))
    return ONE


def _cost(args: Sequence[Value], result: Value) -> int:
    return traversal_cost(args[0])


def _short(t: Type) -> str:
    return {DURATION: "duration", TIMESTAMP: "timestamp"}.get(t, t.type_name)


def _overload(id: str, params: tuple[Type, ...], result: Type, call: Callable[..., Value]) -> Overload:
    return Overload(id, params, result, call, True, _estimate, _cost)


def _extreme(name: str, call: Callable[..., Value]) -> Function:
    return Function(
        name, tuple(_overload(f"list_{_short(t)}_{name}_{_short(t)}", (list_of(t),), t, call) for t in COMPARABLE)
    )


def _position(name: str, id: str, call: Callable[..., int]) -> Function:
    return Function(name, (_overload(id, (list_of(A), A), INT, call),))


LIBRARY: Final = Library(
    "kubernetes.lists",
    (
        Function(
            "isSorted",
            tuple(_overload(f"list_{_short(t)}_is_sorted_bool", (list_of(t),), BOOL, _is_sorted) for t in COMPARABLE),
        ),
        Function(
            "sum",
            tuple(_overload(f"list_{_short(t)}_sum_{_short(t)}", (list_of(t),), t, _sum(zero)) for t, zero in _ZEROS),
        ),
        _extreme("max", _max),
        _extreme("min", _min),
        _position("indexOf", "list_a_index_of_int", _index_of),
        _position("lastIndexOf", "list_a_last_index_of_int", _last_index_of),
    ),
)
