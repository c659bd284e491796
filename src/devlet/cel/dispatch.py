"""Choose the code that a call runs, and its cost.

If the checker found one overload, it is called and charged. If several are possible (an argument is `dyn`), the first
one that fits the values is called. In that case the reference does not know which overload to charge: it charges the
costs that it has by function, those of Kubernetes' own libraries, and one unit for everything else.
"""

from collections.abc import Callable, Sequence
from typing import Final

from devlet.cel.fold import Growing
from devlet.cel.functions import CostOf, Function, Overload
from devlet.cel.types import Kind, Type, type_name
from devlet.cel.values import CelError, Value

_BY_FUNCTION: Final = frozenset(
    """isSorted sum max min indexOf lastIndexOf url lowerAscii upperAscii substring trim replace split join find findAll
    cidr isIP isCIDR ip ip.isCanonical containsIP containsCIDR quantity isQuantity semver isSemver validate""".split()
)
_LIKE: Final = {"containsIP": "cidr_contains_ip_ip", "containsCIDR": "cidr_contains_cidr"}
"""Functions whose unknown overloads cost the same as the given overload."""


def implementation(function: Function, chosen: Overload | None) -> Callable[..., Value]:
    """Return the code of a call. `chosen` is the only possible overload, if there is just one."""
    if function.name == "_+_" and function.dispatch:
        return _in_place(function.dispatch)
    if function.dispatch:
        return function.dispatch
    return _guarded(function.name, (chosen,) if chosen else function.overloads)


def cost(function: Function, chosen: Overload | None) -> CostOf | None:
    if chosen:
        return chosen.cost
    if function.name not in _BY_FUNCTION:
        return None
    like = _LIKE.get(function.name)
    overloads = [overload for overload in function.overloads if not like or overload.id == like]

    def of_fitting(arguments: Sequence[Value], result: Value) -> int | None:
        fitting = next((o for o in overloads if like or _all_fit(o.params, arguments)), overloads[0])
        return fitting.cost(arguments, result) if fitting.cost else None

    return of_fitting


def _in_place(add: Callable[..., Value]) -> Callable[..., Value]:
    def plus(a: Value, b: Value) -> Value:
        if type(a) is Growing and isinstance(b, list | tuple):
            a.extend(b)
            return a
        return add(a, b)

    return plus


def _guarded(name: str, overloads: Sequence[Overload]) -> Callable[..., Value]:
    def call(*arguments: Value) -> Value:
        for overload in overloads:
            if len(overload.params) == len(arguments) and _all_fit(overload.params, arguments):
                return overload.call(*arguments)
        raise CelError(f"no such overload: {name}({', '.join(map(type_name, arguments))})")

    return call


def _all_fit(params: Sequence[Type], arguments: Sequence[Value]) -> bool:
    return all(map(fits, params, arguments))


def fits(param: Type, value: Value) -> bool:
    """Return whether an argument has the type. For lists and maps only the first element is checked."""
    kind = param.kind
    if kind in _ANYTHING:
        return True
    if type_name(value) != param.type_name:
        return False
    if kind is Kind.LIST and isinstance(value, list | tuple) and value:
        return fits(param.params[0], value[0])
    if kind is Kind.MAP and isinstance(value, dict) and value:
        key = next(iter(value))
        return fits(param.params[0], key) and fits(param.params[1], value[key])
    return True


_ANYTHING = frozenset((Kind.DYN, Kind.ANY, Kind.PARAM))
