"""Lists as sets: `sets.contains(list, sublist)`, `sets.equivalent(a, b)`, `sets.intersects(a, b)`."""

from collections.abc import Sequence
from typing import Final

from devlet.cel.functions import CallEstimate, CostOf, Estimator, Function, Library, Overload, SizedNode
from devlet.cel.library.members import membership
from devlet.cel.library.ranges import ONE, actual_size, plus, scaled, size_of, times
from devlet.cel.types import BOOL, Kind, Type, list_of
from devlet.cel.values import Value

_LIST = list_of(Type(Kind.PARAM, "T"))


def _contains(values: Sequence[Value], parts: Sequence[Value]) -> bool:
    return all(map(membership(values, len(parts)), parts))


def _equivalent(a: Sequence[Value], b: Sequence[Value]) -> bool:
    return _contains(a, b) and _contains(b, a)


def _intersects(a: Sequence[Value], b: Sequence[Value]) -> bool:
    return any(map(membership(b, len(a)), a))


def _estimate(factor: float) -> Estimator:
    def estimate(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
        return CallEstimate(plus(scaled(times(size_of(args[0]), size_of(args[1])), factor), ONE))

    return estimate


def _cost(factor: int) -> CostOf:
    return lambda args, result: 1 + actual_size(args[0]) * actual_size(args[1]) * factor


LIBRARY: Final = Library(
    "cel.lib.ext.sets",
    tuple(
        Function(f"sets.{name}", (Overload(f"list_sets_{name}_list", (_LIST, _LIST), BOOL, call, False, *costs),))
        for name, call, costs in (
            ("contains", _contains, (_estimate(1), _cost(1))),
            ("equivalent", _equivalent, (_estimate(2), _cost(2))),
            ("intersects", _intersects, (_estimate(1), _cost(1))),
        )
    ),
)
