"""The language itself: operators, `size`, `in`, `contains`, `startsWith`, `endsWith`, `matches`, conversions, times.

`_&&_`, `_||_`, `_?_:_` and `@not_strictly_false` are here for their signatures only. The evaluator implements them,
because they do not need all of their arguments.
"""

from collections.abc import Callable, Sequence
from typing import Final

from devlet.cel import operators
from devlet.cel.functions import CallEstimate, CostOf, Estimator, Function, Library, Overload, Range, SizedNode
from devlet.cel.library import conversions, times
from devlet.cel.library.ranges import ONE, STRING_FACTOR, actual_size, plus, scaled, size_of
from devlet.cel.library.ranges import times as product
from devlet.cel.library.regex import MATCHES
from devlet.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
    runtime_type,
)
from devlet.cel.values import CelError, Optional, Value

_LIST: Final = list_of(A)
_MAP: Final = map_of(A, B)

_NAMES: Final = {
    INT: "int64",
    UINT: "uint64",
    DOUBLE: "double",
    STRING: "string",
    BYTES: "bytes",
    BOOL: "bool",
    TIMESTAMP: "timestamp",
    DURATION: "duration",
}


# Costs


def _string_cost(size: int) -> int:
    return scaled(Range(size, size), STRING_FACTOR).max


def _value_size(value: Value) -> int:
    return _value_size(value.value) if isinstance(value, Optional) and value.has_value else actual_size(value)


def _smaller(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    """Estimate a comparison: the smaller operand decides."""
    most = min(size_of(args[0]).max, size_of(args[1]).max)
    return CallEstimate(scaled(Range(min(1, most), most), STRING_FACTOR))


def _smaller_cost(args: Sequence[Value], result: Value) -> int:
    return _string_cost(min(map(_value_size, args)))


_LIBRARY_TYPES: Final = {
    "net.IP": 1,
    "net.CIDR": 1,
    "kubernetes.Quantity": 1,
    "kubernetes.Semver": 1,
    "kubernetes.URL": 1,
    "kubernetes.NamedFormat": 64,
}
"""Types of libraries, and the maximum size for comparing two of their values."""


def _estimate_equals(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    left, right = args[0].type.type_name, args[1].type.type_name
    if left != right or left not in _LIBRARY_TYPES:
        return _smaller(target, args)
    most = size_of(args[1]).max if left == "kubernetes.URL" and args[1].size else _LIBRARY_TYPES[left]
    return CallEstimate(ONE if most == 1 else scaled(Range(1, most), STRING_FACTOR))


def _equals_cost(args: Sequence[Value], result: Value) -> int:
    return 1 if runtime_type(args[0]).type_name in _LIBRARY_TYPES else _smaller_cost(args, result)


def _sum(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    size = plus(size_of(args[0]), size_of(args[1]))
    return CallEstimate(scaled(size, STRING_FACTOR), size)


def _sum_of_lists(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    return CallEstimate(ONE, plus(size_of(args[0]), size_of(args[1])))


def _sum_cost(args: Sequence[Value], result: Value) -> int:
    return _string_cost(actual_size(args[0]) + actual_size(args[1]))


def _elements(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    return CallEstimate(size_of(args[1]))


def _elements_cost(args: Sequence[Value], result: Value) -> int:
    return actual_size(args[1])


def _affix(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    return CallEstimate(scaled(size_of(args[0]), STRING_FACTOR))


def _affix_cost(args: Sequence[Value], result: Value) -> int:
    """Count the text, although the estimate counts the prefix, as in the reference."""
    return _string_cost(actual_size(args[0]))


def _substring(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate | None:
    if target is None:
        return None
    return CallEstimate(product(scaled(size_of(target), STRING_FACTOR), scaled(size_of(args[0]), STRING_FACTOR)))


def _substring_cost(args: Sequence[Value], result: Value) -> int:
    return _string_cost(actual_size(args[0])) * _string_cost(actual_size(args[1]))


# Operators


def _not_callable(*args: Value) -> Value:
    raise CelError(operators.NO_OVERLOAD)


def _not_strictly_false(value: Value) -> bool:
    return value if isinstance(value, bool) else True


def _one(
    name: str,
    id: str,
    params: tuple[Type, ...],
    result: Type,
    call: Callable[..., Value],
    estimate: Estimator | None = None,
    cost: CostOf | None = None,
) -> Function:
    return Function(name, (Overload(id, params, result, call, estimate=estimate, cost=cost),), dispatch=call)


def _arithmetic(name: str, word: str, call: Callable[..., Value], *signatures: tuple[Type, ...]) -> Function:
    """Declare an arithmetic operator. The last type of a signature is the result."""
    overloads = (Overload(f"{word}_{_suffix(s[:-1])}", s[:-1], s[-1], call) for s in signatures)
    return Function(name, tuple(overloads), dispatch=call)


def _suffix(params: tuple[Type, ...]) -> str:
    time = any(param in (TIMESTAMP, DURATION) for param in params)
    return "_".join(_NAMES[param] for param in (params if time else params[:1]))


def _same(*types: Type) -> tuple[tuple[Type, ...], ...]:
    return tuple((type, type, type) for type in types)


def _addition() -> Function:
    def overload(id: str, type: Type, estimate: Estimator, cost: CostOf | None) -> Overload:
        return Overload(id, (type, type), type, operators.add, estimate=estimate, cost=cost)

    rest = _arithmetic(
        "_+_",
        "add",
        operators.add,
        (DOUBLE, DOUBLE, DOUBLE),
        (DURATION, DURATION, DURATION),
        (DURATION, TIMESTAMP, TIMESTAMP),
        (TIMESTAMP, DURATION, TIMESTAMP),
        (INT, INT, INT),
    ).overloads
    return Function(
        "_+_",
        (
            overload("add_bytes", BYTES, _sum, _sum_cost),
            *rest,
            overload("add_list", _LIST, _sum_of_lists, None),
            overload("add_string", STRING, _sum, _sum_cost),
            Overload("add_uint64", (UINT, UINT), UINT, operators.add),
        ),
        dispatch=operators.add,
    )


def _comparison(name: str, word: str, call: Callable[[Value, Value], bool]) -> Function:
    """Declare a comparison, including numbers of different types. (The checker leaves these out for releases that lack
    them.)"""

    def overload(left: Type, right: Type) -> Overload:
        text = left in (STRING, BYTES)
        id = f"{word}_{_NAMES[left]}" + (f"_{_NAMES[right]}" if left != right else "")
        return Overload(
            id, (left, right), BOOL, call, estimate=_smaller if text else None, cost=_smaller_cost if text else None
        )

    numbers = [
        (INT, INT), (INT, DOUBLE), (INT, UINT),
        (UINT, UINT), (UINT, DOUBLE), (UINT, INT),
        (DOUBLE, DOUBLE), (DOUBLE, INT), (DOUBLE, UINT),
    ]  # fmt: skip
    rest = [(type, type) for type in (STRING, BYTES, TIMESTAMP, DURATION)]
    pairs = [(BOOL, BOOL), *numbers, *rest]
    return Function(name, tuple(overload(left, right) for left, right in pairs), dispatch=call)


def _sizes() -> Function:
    overloads = []
    for name, type in (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING)):
        overloads.append(Overload(f"size_{name}", (type,), INT, operators.size))
        overloads.append(Overload(f"{name}_size", (type,), INT, operators.size, is_member=True))
    return Function("size", tuple(overloads), dispatch=operators.size)


_OPERATORS: Final = (
    _one("_?_:_", "conditional", (BOOL, A, A), A, _not_callable),
    _one("_&&_", "logical_and", (BOOL, BOOL), BOOL, _not_callable),
    _one("_||_", "logical_or", (BOOL, BOOL), BOOL, _not_callable),
    _one("!_", "logical_not", (BOOL,), BOOL, operators.logical_not),
    _one("@not_strictly_false", "not_strictly_false", (BOOL,), BOOL, _not_strictly_false),
    _one("_==_", "equals", (A, A), BOOL, operators.equal, _estimate_equals, _equals_cost),
    _one("_!=_", "not_equals", (A, A), BOOL, operators.not_equal, _smaller, _smaller_cost),
    _addition(),
    _arithmetic("_/_", "divide", operators.divide, *_same(DOUBLE, INT, UINT)),
    _arithmetic("_%_", "modulo", operators.modulo, *_same(INT, UINT)),
    _arithmetic("_*_", "multiply", operators.multiply, *_same(DOUBLE, INT, UINT)),
    _arithmetic("-_", "negate", operators.negate, (DOUBLE, DOUBLE), (INT, INT)),
    _arithmetic(
        "_-_",
        "subtract",
        operators.subtract,
        (DOUBLE, DOUBLE, DOUBLE),
        (DURATION, DURATION, DURATION),
        (INT, INT, INT),
        (TIMESTAMP, DURATION, TIMESTAMP),
        (TIMESTAMP, TIMESTAMP, DURATION),
        (UINT, UINT, UINT),
    ),
    _comparison("_<_", "less", operators.less),
    _comparison("_<=_", "less_equals", operators.less_equals),
    _comparison("_>_", "greater", operators.greater),
    _comparison("_>=_", "greater_equals", operators.greater_equals),
    Function(
        "_[_]",
        (
            Overload("index_list", (_LIST, INT), A, operators.index),
            Overload("index_map", (_MAP, A), B, operators.index),
        ),
        dispatch=operators.index,
    ),
    Function(
        "@in",
        (
            Overload("in_list", (A, _LIST), BOOL, operators.contains, estimate=_elements, cost=_elements_cost),
            Overload("in_map", (A, _MAP), BOOL, operators.contains),
        ),
        dispatch=operators.contains,
    ),
    _sizes(),
)


# Strings


def _text_test(name: str, id: str, test: Callable[[str, str], bool], estimate: Estimator, cost: CostOf) -> Function:
    def call(text: Value, other: Value) -> bool:
        if not (isinstance(text, str) and isinstance(other, str)):
            raise CelError(operators.NO_OVERLOAD)
        return test(text, other)

    overload = Overload(id, (STRING, STRING), BOOL, call, is_member=True, estimate=estimate, cost=cost)
    return Function(name, (overload,), dispatch=call)


_STRINGS: Final = (
    _text_test("contains", "contains_string", str.__contains__, _substring, _substring_cost),
    _text_test("endsWith", "ends_with_string", str.endswith, _affix, _affix_cost),
    _text_test("startsWith", "starts_with_string", str.startswith, _affix, _affix_cost),
    MATCHES,
)

LIBRARY: Final = Library(
    "standard",
    (*_OPERATORS, *conversions.LIBRARY.functions, *_STRINGS, *times.LIBRARY.functions),
    types=(BOOL, BYTES, DOUBLE, DURATION, INT, _LIST, _MAP, NULL, STRING, TIMESTAMP, TYPE, UINT),
    macros=("has", "all", "exists", "exists_one", "map", "filter"),
)
