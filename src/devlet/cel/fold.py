"""Comprehensions: the expansion of `all`, `map`, `filter`, `cel.bind` and similar macros."""

from collections.abc import Iterator

from devlet.cel.attributes import Step
from devlet.cel.frames import AnyFrame, FoldFrame
from devlet.cel.reference_types import go_type
from devlet.cel.values import CelError, Value


class Growing(list[Value]):
    """The list that a comprehension builds. It is extended in place, because otherwise `map` over n elements would take
    n * n steps.

    Only its comprehension can refer to it, so the mutation is invisible.
    """


class Fold:
    """A comprehension. `accumulator` and the variables are names; the other fields are parts of the plan."""

    __slots__ = ("accumulator", "condition", "id", "init", "range", "result", "step", "variable", "variable2")

    def __init__(
        self,
        id: int,
        names: tuple[str, str, str],
        range: Step,
        init: Step,
        condition: Step,
        step: Step,
        result: Step,
    ) -> None:
        self.id = id
        self.accumulator, self.variable, self.variable2 = names
        self.range = range
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result

    def evaluate(self, frame: AnyFrame) -> Value:
        value = self.range.evaluate(frame)
        if not isinstance(value, CelError):
            value = self._folded(FoldFrame(frame, self), value)
        frame.tracker.drop((self.range.id,))
        frame.tracker.record(self.id, value)
        return value

    def start(self, outer: AnyFrame) -> Value:
        value = self.init.evaluate(outer)
        return Growing() if value == [] and self.accumulator.startswith("@") else value

    def _folded(self, frame: FoldFrame, over: Value) -> Value:
        if not isinstance(over, list | tuple | dict):
            return self._not_iterable(over)
        for frame.first, frame.second in self._pairs(over):
            if self.condition.evaluate(frame) is False:
                break
            frame.accumulator = self.step.evaluate(frame)
            frame.run.step(self.id)
        frame.finished = True
        value = self.result.evaluate(frame)
        return list(value) if type(value) is Growing else value

    def _pairs(self, over: Value) -> Iterator[tuple[Value, Value]]:
        if not self.variable2:
            return ((element, None) for element in over)
        return iter(over.items() if isinstance(over, dict) else enumerate(over))

    def _not_iterable(self, over: Value) -> CelError:
        if self.variable2:
            return CelError(f"unsupported comprehension range type: {go_type(over)}", self.id)
        return CelError(f"got '{go_type(over)}', expected iterable type", self.id)
