"""Optional values: `optional.of(x)`, `a.?b`, `m[?k]`, `or`, `orValue`, and `first` and `last` of lists.

`or` and `orValue` must not evaluate their argument if the optional has a value; the evaluator ensures that.
"""

from collections.abc import Callable
from typing import Final

from devlet.cel import operators
from devlet.cel.functions import Function, Library, Overload
from devlet.cel.texts import key_text
from devlet.cel.types import BOOL, DYN, INT, OPTIONAL, STRING, Kind, Type, list_of, map_of, optional_of
from devlet.cel.values import NONE, TIMESTAMP_MIN, CelError, Duration, Optional, Timestamp, Value

_K: Final = Type(Kind.PARAM, "K")
_V: Final = Type(Kind.PARAM, "V")
_OPTIONAL: Final = optional_of(_V)
_LIST: Final = list_of(_V)
_MAP: Final = map_of(_K, _V)


def of_non_zero(value: Value) -> Optional:
    return NONE if is_zero(value) else Optional(value)


def is_zero(value: Value) -> bool:
    """Return whether the value is null, false, 0, empty, or the year 1. Library values and optionals have no zero
    value."""
    if isinstance(value, Timestamp):
        return value.nanoseconds == TIMESTAMP_MIN
    if isinstance(value, Duration):
        return value.nanoseconds == 0
    return value is None or (isinstance(value, bool | int | float | str | bytes | list | tuple | dict) and not value)


def value_of(optional: Optional) -> Value:
    if not optional.has_value:
        raise CelError("optional.none() dereference")
    return optional.value


def either(optional: Value, other: Value) -> Value:
    """Implement `or`."""
    return other if isinstance(optional, Optional) and not optional.has_value else optional


def or_value(optional: Value, other: Value) -> Value:
    if not isinstance(optional, Optional):
        return optional
    return optional.value if optional.has_value else other


def first(values: list[Value]) -> Optional:
    return Optional(values[0]) if values else NONE


def last(values: list[Value]) -> Optional:
    return Optional(values[-1]) if values else NONE


def unwrap(values: list[Value]) -> list[Value]:
    for value in values:
        if not isinstance(value, Optional):
            raise CelError(f"value {key_text(value)} is not optional")
    return [value.value for value in values if value.has_value]


def _function(name: str, id: str, params: tuple[Type, ...], result: Type, call: Callable[..., Value]) -> Function:
    return Function(name, (Overload(id, params, result, call),))


def _method(name: str, id: str, params: tuple[Type, ...], result: Type, call: Callable[..., Value]) -> Function:
    return Function(name, (Overload(id, params, result, call, is_member=True),))


_OPTIONAL_INDEX: Final = Function(
    "_[?_]",
    (
        Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL, operators.optional_index),
        Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL, operators.optional_index),
        Overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL, operators.optional_index),
        Overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL, operators.optional_index),
    ),
    dispatch=operators.optional_index,
)
_INDEX: Final = Function(
    "_[_]",
    (
        Overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL, operators.index),
        Overload("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL, operators.index),
    ),
    dispatch=operators.index,
)

LIBRARY: Final = Library(
    "cel.lib.optional",
    (
        _function("optional.of", "optional_of", (_V,), _OPTIONAL, Optional),
        _function("optional.ofNonZeroValue", "optional_ofNonZeroValue", (_V,), _OPTIONAL, of_non_zero),
        _function("optional.none", "optional_none", (), _OPTIONAL, lambda: NONE),
        _method("value", "optional_value", (_OPTIONAL,), _V, value_of),
        _method("hasValue", "optional_hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.has_value),
        _method("or", "optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, either),
        _method("orValue", "optional_orValue_value", (_OPTIONAL, _V), _V, or_value),
        Function(
            "_?._",
            (Overload("select_optional_field", (DYN, STRING), _OPTIONAL, operators.optional_select),),
            dispatch=operators.optional_select,
        ),
        _OPTIONAL_INDEX,
        _INDEX,
        _method("last", "list_last", (_LIST,), _OPTIONAL, last),
        _method("first", "list_first", (_LIST,), _OPTIONAL, first),
        _function("optional.unwrap", "optional_unwrap", (list_of(_OPTIONAL),), _LIST, unwrap),
        _method("unwrapOpt", "optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, unwrap),
    ),
    types=(OPTIONAL,),
    macros=("optMap", "optFlatMap"),
)
