"""Steps of a plan that build lists, maps and messages.

They cost the same whether they succeed or not. Evaluation stops at the first element that fails.
"""

from collections.abc import Callable, Sequence

from devlet.cel.attributes import Step
from devlet.cel.cost import LIST_COST, MAP_COST, STRUCT_COST
from devlet.cel.frames import AnyFrame
from devlet.cel.reference_types import go_type
from devlet.cel.steps import called
from devlet.cel.texts import key_text
from devlet.cel.types import type_name
from devlet.cel.values import CelError, Optional, Value
from devlet.objects.values.semver import Semver


class Constructor:
    """Builds a value. `make` is called with the values of the parts."""

    __slots__ = ("_cost", "_make", "_parts", "id")

    def __init__(self, id: int, parts: Sequence[Step], make: Callable[[Sequence[Value]], Value], cost: int) -> None:
        self.id = id
        self._parts = parts
        self._make = make
        self._cost = cost

    def evaluate(self, frame: AnyFrame) -> Value:
        values: list[Value] = []
        failure: CelError | None = None
        for part in self._parts:
            value = part.evaluate(frame)
            if isinstance(value, CelError):
                failure = value
                break
            values.append(value)
        result = failure or self.fold(values)
        frame.tracker.take([part.id for part in self._parts])
        frame.tracker.record(self.id, result, self._cost)
        return result

    def fold(self, values: Sequence[Value]) -> Value:
        """Return the value, given constant values of the parts."""
        return called(self._make, [values], self.id)


def list_of_parts(id: int, parts: Sequence[Step], optionals: frozenset[int]) -> Constructor:
    """Return the step for a list. `optionals` are the indices of the elements that are written `?x`."""
    return Constructor(id, parts, (lambda values: _list(values, optionals)) if optionals else list, LIST_COST)


def map_of_parts(id: int, parts: Sequence[Step], optionals: frozenset[int]) -> Constructor:
    """Return the step for a map. `parts` alternates keys and values; `optionals` are the indices of the entries that
    are written `?key: x`."""
    return Constructor(id, parts, lambda values: _map(values, optionals), MAP_COST)


def message_of_parts(id: int, parts: Sequence[Step], make: Callable[[Sequence[Value]], Value]) -> Constructor:
    return Constructor(id, parts, make, STRUCT_COST)


def _list(values: Sequence[Value], optionals: frozenset[int]) -> list[Value]:
    made: list[Value] = []
    for position, value in enumerate(values):
        if position not in optionals:
            made.append(value)
        elif type(value) is not Optional:
            raise CelError(f"cannot initialize optional list element from non-optional value {key_text(value)}")
        elif value.has_value:
            made.append(value.value)
    return made


def _map(values: Sequence[Value], optionals: frozenset[int]) -> dict[Value, Value]:
    made: dict[Value, Value] = {}
    for number, (key, value) in enumerate(zip(values[::2], values[1::2], strict=True)):
        _check_key(key)
        if number not in optionals:
            made[key] = value
        elif type(value) is not Optional:
            raise CelError(_not_optional(key, value))
        elif value.has_value:
            made[key] = value.value
        else:
            made.pop(key, None)
    return made


def _check_key(key: Value) -> None:
    """Check a key. The reference accepts lists and maps as keys although they can never be found, and fails on other
    types."""
    if isinstance(key, list | tuple | dict):
        raise CelError(f"unsupported key type: {type_name(key)}")
    if isinstance(key, bytes | Semver):
        raise CelError(f"internal error: runtime error: hash of unhashable type {go_type(key)}")


def _not_optional(key: Value, value: Value) -> str:
    return f"cannot initialize optional entry '{key_text(key)}' from non-optional value {key_text(value)}"
