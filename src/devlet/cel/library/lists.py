"""Lists: slice, flatten, reverse, distinct, sort, sortBy and lists.range.

`sortBy` is a macro (devlet.cel.macros): it computes the keys and calls `@sortByAssociatedKeys`. If a value is not a
list, the reference crashes while it counts the cost, and users see the text of that crash as the error.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import Final, NoReturn

from devlet.cel.functions import (
    UNBOUNDED,
    CallEstimate,
    CostOf,
    Estimator,
    Function,
    Library,
    Overload,
    Range,
    SizedNode,
)
from devlet.cel.library.members import is_equal, same_plain_type
from devlet.cel.library.ranges import (
    LIST_COST,
    ONE,
    STRING_FACTOR,
    actual_size,
    check_steps,
    plus,
    scaled,
    size_of,
    times,
)
from devlet.cel.operators import NO_OVERLOAD, check_weight, compare
from devlet.cel.reference_types import go_type
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
    Kind,
    Type,
    list_of,
    runtime_type,
    type_name,
)
from devlet.cel.values import CelError, Duration, Timestamp, Uint, Value

COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
"""Types that can be ordered, in the order in which their overloads are tried."""

_COMPARABLE_CLASSES = frozenset((int, Uint, float, bool, Duration, Timestamp, str, bytes))
_RECEIVERS = frozenset((str, Duration, Timestamp))
_ADDABLE_CLASSES = _COMPARABLE_CLASSES - {bool}

_T = Type(Kind.PARAM, "T")
_LIST = list_of(_T)


# Functions


def _slice(values: Sequence[Value], first: int, last: int) -> Sequence[Value]:
    cannot = f"cannot slice({first}, {last})"
    if first < 0 or last < 0:
        raise CelError(f"{cannot}, negative indexes not supported")
    if first > last:
        raise CelError(f"{cannot}, start index must be less than or equal to end index")
    if last > len(values):
        raise CelError(f"{cannot}, list is length {len(values)}")
    return values[first:last]


def _flatten(value: Value, *depth: Value) -> Sequence[Value]:
    if not isinstance(value, list | tuple) or any(type(levels) is not int for levels in depth):
        raise CelError(f"no such overload: {type_name(value)}.flatten({', '.join(map(type_name, depth))})")
    values: Sequence[Value] = value
    levels = depth[0] if depth else 1
    if levels < 0:
        raise CelError("level must be non-negative")
    check_weight(value)
    while levels and any(isinstance(item, list | tuple) for item in values):
        values = [inner for item in values for inner in (item if isinstance(item, list | tuple) else (item,))]
        levels -= 1
    return values


def _range(count: int) -> Sequence[int]:
    check_steps(count)
    return list(range(count))


def _reverse(values: Sequence[Value]) -> Sequence[Value]:
    return values[::-1]


def _distinct(values: Sequence[Value]) -> Sequence[Value]:
    if same_plain_type(values):
        return list(dict.fromkeys(values))
    check_steps(len(values) ** 2)
    found: list[Value] = []
    for item in values:
        if not any(is_equal(item, other) for other in found):
            found.append(item)
    return found


def _sort(value: Value) -> Sequence[Value]:
    if not isinstance(value, list | tuple):
        raise _no_overload("sort", value)
    return _sorted_by(value, value)


def _sort_by_keys(value: Value, keys: Sequence[Value]) -> Sequence[Value]:
    """Sort by keys that the macro computed, so they are a list."""
    if not isinstance(value, list | tuple):
        raise _no_overload("@sortByAssociatedKeys", value)
    return _sorted_by(value, keys)


def _no_overload(function: str, value: Value) -> CelError:
    """Return the error. Values with methods of their own get a message that does not name the missing method."""
    return CelError(NO_OVERLOAD if type(value) in _RECEIVERS else f"{NO_OVERLOAD}: {function}")


def _sorted_by(values: Sequence[Value], keys: Sequence[Value]) -> Sequence[Value]:
    if len(values) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not keys:
        return values
    if type(keys[0]) not in _COMPARABLE_CLASSES:
        raise CelError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise CelError("list elements must have the same type")
    return [values[i] for i in sorted(range(len(keys)), key=_order(keys))]


def _order(keys: Sequence[Value]) -> Callable[[int], Value]:
    """Return a sort key. NaN is neither before nor after any value."""
    if any(key != key for key in keys):
        return cmp_to_key(lambda i, j: compare(keys[i], keys[j]) if keys[i] == keys[i] and keys[j] == keys[j] else 0)
    return keys.__getitem__


# Cost


def _listing(size: Range, factor: float = 1) -> CallEstimate:
    """Estimate a call that builds a list of about `size`."""
    return CallEstimate(plus(scaled(size, factor), ONE, Range(LIST_COST, LIST_COST)), size)


def _int_literal(node: SizedNode, otherwise: int) -> int:
    if not node.is_literal or type(node.literal) is not int:
        return otherwise
    return max(node.literal, 0)


def _fixed(size: int) -> Range:
    """Treat the bounds as unsigned numbers, so that negative ones wrap around."""
    return Range(size % (UNBOUNDED + 1), size % (UNBOUNDED + 1))


def _estimate_slice(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    if target is None:
        return None
    return _listing(_fixed(_int_literal(args[1], size_of(target).max) - _int_literal(args[0], 0)))


def _estimate_flatten(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    depth = _int_literal(args[0], UNBOUNDED) if args else 1
    return _listing(size_of(target), depth) if target else None


def _estimate_range(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    return _listing(_fixed(_int_literal(args[0], UNBOUNDED)))


def _estimate_reverse(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    return _listing(size_of(target)) if target else None


def _squared(node: SizedNode, factor: float = 2) -> CallEstimate:
    size = size_of(node)
    return _listing(times(size, size), factor)


def _estimate_distinct(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    return _squared(target) if target else None


def _factor(keys: Type) -> float:
    return 2 + STRING_FACTOR if keys in (STRING, BYTES) else 2


def _estimate_sort(keys: Type) -> Estimator:
    return lambda target, args: _squared(target, _factor(keys)) if target else None


def _estimate_sort_by(keys: Type) -> Estimator:
    return lambda target, args: _squared(args[0], _factor(keys))


def _listing_cost(size: int, factor: float = 1) -> int:
    return int(size * factor) + 1 + LIST_COST


def _result_cost(args: Sequence[Value], result: Value) -> int:
    return _listing_cost(actual_size(result))


def _crash(problem: str) -> NoReturn:
    raise CelError(f"internal error: interface conversion: {problem}")


def _flatten_cost(args: Sequence[Value], result: Value) -> int:
    if len(args) == 1:
        return _listing_cost(actual_size(args[0]))
    if type(args[1]) is not int:
        _crash(f"ref.Val is {_go_type(args[1])}, not types.Int")
    return _listing_cost(actual_size(args[0]), float(args[1]))


def _go_type(value: Value) -> str:
    return "*types.Err" if isinstance(value, CelError) else go_type(value)


def _comparisons_cost(position: int) -> CostOf:
    def cost(args: Sequence[Value], result: Value) -> int:
        keys = args[position]
        if not isinstance(keys, list | tuple):
            missing = "Contains" if type(keys) in _ADDABLE_CLASSES else "Add"
            _crash(f"{_go_type(keys)} is not traits.Lister: missing method {missing}")
        return _listing_cost(len(keys) ** 2, _factor(runtime_type(keys[0])) if keys else 2)

    return cost


# The library


def _member(
    name: str, id: str, params: tuple[Type, ...], call: Callable[..., Value], estimate: Estimator, cost: CostOf
) -> Function:
    return Function(name, (Overload(id, params, _LIST, call, True, estimate, cost),))


def _each(overload: Callable[[Type], Overload]) -> Iterable[Overload]:
    return map(overload, COMPARABLE)


def _sort_overload(t: Type) -> Overload:
    id = f"list_{t.type_name}_sort"
    return Overload(id, (list_of(t),), list_of(t), _sort, True, _estimate_sort(t), _comparisons_cost(0))


def _sort_by_overload(t: Type) -> Overload:
    id = f"list_{t.type_name}_sortByAssociatedKeys"
    return Overload(id, (_LIST, list_of(t)), _LIST, _sort_by_keys, True, _estimate_sort_by(t), _comparisons_cost(1))


_FLATTEN = (
    Overload("list_flatten", (list_of(_LIST),), _LIST, _flatten, True, _estimate_flatten, _flatten_cost),
    Overload("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten, True, _estimate_flatten, _flatten_cost),
)

LIBRARY: Final = Library(
    "cel.lib.ext.lists",
    (
        _member("slice", "list_slice", (_LIST, INT, INT), _slice, _estimate_slice, _result_cost),
        Function("flatten", _FLATTEN, dispatch=_flatten),
        Function("sort", tuple(_each(_sort_overload)), dispatch=_sort),
        Function("@sortByAssociatedKeys", tuple(_each(_sort_by_overload)), dispatch=_sort_by_keys),
        Function(
            "lists.range",
            (Overload("lists_range", (INT,), list_of(INT), _range, False, _estimate_range, _result_cost),),
        ),
        _member("reverse", "list_reverse", (_LIST,), _reverse, _estimate_reverse, _result_cost),
        _member("distinct", "list_distinct", (_LIST,), _distinct, _estimate_distinct, _comparisons_cost(0)),
    ),
    macros=("sortBy",),
)
