"""Constant lists as sets, for `x in ["a", "b"]`. As in the reference, equal numbers of other types are added."""

from typing import Final

from devlet.cel.reference_types import go_type
from devlet.cel.types import type_name
from devlet.cel.values import INT_MAX, INT_MIN, UINT_MAX, CelError, Uint, Value

_PRIMITIVE: Final = frozenset((bool, int, Uint, float, str))
_UNHASHABLE: Final = frozenset(("bytes", "kubernetes.Semver"))


class Members:
    """A set that distinguishes 1 from true, and 1 from 1u: a value is found only if its type was added."""

    __slots__ = ("_members",)

    def __init__(self, elements: list[Value]) -> None:
        self._members = frozenset((type(value), value) for element in elements for value in _equivalents(element))

    @property
    def texts(self) -> frozenset[str]:
        """Return the strings in the set."""
        return frozenset(value for kind, value in self._members if kind is str)

    def has(self, value: Value, node: int = 0) -> bool:
        """Test membership. Raises for values that the reference cannot look up; `||` does not absorb that error."""
        if type(value) in _PRIMITIVE:
            return value == value and (type(value), value) in self._members
        if type_name(value) in _UNHASHABLE:
            raise CelError(f"internal error: runtime error: hash of unhashable type {go_type(value)}", node)
        return False


def members(elements: list[Value]) -> Members | None:
    """Return the elements as a set; None if that is not possible."""
    return Members(elements) if all(type(element) in _PRIMITIVE for element in elements) else None


def _equivalents(element: Value) -> list[Value]:
    kind = type(element)
    if kind is float:
        return [element, *_whole(element)]
    if kind is int:
        return [element, float(element), *([Uint(element)] if element >= 0 else [])]
    if kind is Uint:
        return [element, float(element), *([int(element)] if element <= INT_MAX else [])]
    return [element]


def _whole(number: float) -> list[int]:
    if number != number or number in (float("inf"), float("-inf")) or number != int(number):
        return []
    whole = int(number)
    signed = [whole] if INT_MIN < whole < INT_MAX else []
    return [*signed, *([Uint(whole)] if 0 <= whole <= UINT_MAX else [])]
