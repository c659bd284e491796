"""The steps of a plan. Each computes its value in a frame and reports it to the tracker, which counts cost.

A failure is returned, not raised: `a && b` continues after `a` failed. An exception ends the whole evaluation,
regardless of `&&` and `||`: a limit was reached, or the reference cannot put a value into a set.
"""

from collections.abc import Callable, Sequence

from devlet.cel.attributes import Attribute, Conditional, Step
from devlet.cel.cost import SELECT_COST
from devlet.cel.frames import AnyFrame
from devlet.cel.functions import CostOf
from devlet.cel.membership import Members
from devlet.cel.values import CelError, CostExceeded, Optional, Value


class ConstantStep:
    """A literal, or a value that the planner computed. `parts` are the values of the nodes that it replaces."""

    __slots__ = ("_parts", "id", "value")

    def __init__(self, id: int, value: Value, parts: Sequence[tuple[int, Value]] = ()) -> None:
        self.id = id
        self.value = value
        self._parts = tuple(parts)

    @property
    def all_parts(self) -> tuple[tuple[int, Value], ...]:
        return (*self._parts, (self.id, self.value))

    def evaluate(self, frame: AnyFrame) -> Value:
        if frame.tracker.trace is not None:
            frame.tracker.trace.update(self._parts)
        frame.tracker.record(self.id, self.value)
        return self.value


class AttributeStep:
    __slots__ = ("attribute",)

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute

    @property
    def id(self) -> int:
        return self.attribute.id

    def evaluate(self, frame: AnyFrame) -> Value:
        attribute = self.attribute
        value = attribute.resolve(frame)
        frame.tracker.record(attribute.id, value, _forget_branches(frame, attribute))
        return value


class PresenceStep:
    """A test `has(a.b)`. The attribute ends in a Presence."""

    __slots__ = ("_attribute", "id")

    def __init__(self, id: int, attribute: Attribute) -> None:
        self.id = id
        self._attribute = attribute

    def evaluate(self, frame: AnyFrame) -> Value:
        value = self._attribute.resolve(frame)
        if type(value) is Optional:
            value = value.has_value
        cost = _forget_branches(frame, self._attribute) - SELECT_COST
        frame.tracker.record(self.id, value, max(cost, -frame.tracker.cost))
        return value


def _forget_branches(frame: AnyFrame, attribute: Attribute) -> int:
    """Forget the values of the branches, and return the cost of the attribute."""
    if isinstance(attribute, Conditional):
        frame.tracker.drop((attribute.falsy.id, attribute.truthy.id, attribute.condition.id))
        return 0
    frame.tracker.drop((attribute.id,))
    return SELECT_COST


class Logic:
    """`&&` (decided by False) or `||` (decided by True). A failure counts only if no operand decides."""

    __slots__ = ("_decides", "_terms", "id")

    def __init__(self, id: int, decides: bool, terms: Sequence[Step]) -> None:
        self.id = id
        self._decides = decides
        self._terms = terms

    def evaluate(self, frame: AnyFrame) -> Value:
        result: Value = not self._decides
        for term in self._terms:
            value = term.evaluate(frame)
            if value is self._decides:
                result = value
                break
            if type(value) is not bool and not isinstance(result, CelError):
                result = value if isinstance(value, CelError) else CelError("no such overload", self.id)
        frame.tracker.drop(term.id for term in self._terms)
        frame.tracker.record(self.id, result)
        return result


class Call:
    """A function call on evaluated arguments. With `stops_early`, evaluation stops at the first argument that fails."""

    __slots__ = ("_arguments", "_call", "_cost", "_ids", "_is_strict", "_stops_early", "id")

    def __init__(
        self,
        id: int,
        arguments: Sequence[Step],
        call: Callable[..., Value],
        cost: CostOf | None,
        *,
        stops_early: bool = False,
        is_strict: bool = True,
    ) -> None:
        self.id = id
        self._arguments = arguments
        self._ids = tuple(argument.id for argument in arguments)
        self._call = call
        self._cost = cost
        self._stops_early = stops_early
        self._is_strict = is_strict

    def evaluate(self, frame: AnyFrame) -> Value:
        values: list[Value] = []
        result: Value = None
        for argument in self._arguments:
            value = argument.evaluate(frame)
            values.append(value)
            if isinstance(value, CelError) and self._is_strict and result is None:
                result = value
                if self._stops_early:
                    break
        if result is None:
            result = called(self._call, values, self.id)
        frame.tracker.record(self.id, result, self._charged(frame, result))
        return result

    def fold(self, arguments: Sequence[Value]) -> Value:
        """Return the value, given constant arguments."""
        return called(self._call, arguments, self.id)

    def _charged(self, frame: AnyFrame, result: Value) -> int:
        found = frame.tracker.take(self._ids)
        if found is None:
            return 0
        cost = self._cost(found, result) if self._cost else None
        return 1 if cost is None else cost


def called(call: Callable[..., Value], arguments: Sequence[Value], node: int) -> Value:
    try:
        return call(*arguments)
    except CostExceeded as error:
        raise CostExceeded(error.message, node) from error
    except CelError as error:
        return error if error.node else CelError(error.message, node)


class OptionalOr:
    """`a.or(b)`, `a.orValue(b)`: free, and `b` is evaluated only if needed."""

    __slots__ = ("_left", "_right", "_unwraps", "id")

    def __init__(self, id: int, left: Step, right: Step, unwraps: bool) -> None:
        self.id = id
        self._left = left
        self._right = right
        self._unwraps = unwraps

    def evaluate(self, frame: AnyFrame) -> Value:
        value = self._left.evaluate(frame)
        if type(value) is Optional:
            if not value.has_value:
                value = self._right.evaluate(frame)
            elif self._unwraps:
                value = value.value
        frame.tracker.record(self.id, value)
        return value


class SetStep:
    """`x in [1, 2, 3]`: free if the list is constant."""

    __slots__ = ("_element", "_members", "id")

    def __init__(self, id: int, element: Step, members: Members) -> None:
        self.id = id
        self._element = element
        self._members = members

    def evaluate(self, frame: AnyFrame) -> Value:
        value = self._element.evaluate(frame)
        if not isinstance(value, CelError):
            value = self._members.has(value, self.id)
        frame.tracker.record(self.id, value)
        return value
