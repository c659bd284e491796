"""Look up names during evaluation: the variables, and inside each comprehension its own names.

The initial value of an accumulator is computed when it is first read, in the frame outside of the comprehension. So an
unused variable of `cel.bind` costs nothing and cannot fail.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from devlet.cel.cost import Tracker
from devlet.cel.operators import ABSENT
from devlet.cel.values import CostExceeded, Value

if TYPE_CHECKING:
    from devlet.cel.fold import Fold

STEPS_BETWEEN_QUESTIONS: Final = 100
"""The number of comprehension steps between two calls of `give_up`."""


class Run:
    """One evaluation: its cost, and whether to give it up."""

    __slots__ = ("_give_up", "_steps", "tracker")

    def __init__(self, tracker: Tracker, give_up: Callable[[], bool] | None) -> None:
        self.tracker = tracker
        self._give_up = give_up
        self._steps = 0

    def step(self, node: int) -> None:
        """Count a step of a comprehension. Raises CostExceeded."""
        self._steps += 1
        if self._give_up and self._steps % STEPS_BETWEEN_QUESTIONS == 0 and self._give_up():
            raise CostExceeded("operation interrupted", node)


class Frame:
    """The variables of the environment."""

    __slots__ = ("run", "tracker", "variables")

    def __init__(self, run: Run, variables: Mapping[str, Value]) -> None:
        self.run = run
        self.tracker: Tracker = run.tracker
        self.variables = variables

    def find(self, name: str) -> Value:
        """Return the value, an error if computing the value failed, or ABSENT."""
        return self.variables.get(name, ABSENT)


class FoldFrame:
    """The names of one comprehension. Its variables no longer exist when its result is computed."""

    __slots__ = ("_fold", "_outer", "accumulator", "finished", "first", "run", "second", "tracker")

    def __init__(self, outer: "AnyFrame", fold: "Fold") -> None:
        self.run: Run = outer.run
        self.tracker: Tracker = outer.tracker
        self.accumulator: Value = ABSENT
        self.first: Value = None
        self.second: Value = None
        self.finished = False
        self._outer = outer
        self._fold = fold

    def find(self, name: str) -> Value:
        fold = self._fold
        if name == fold.accumulator:
            if self.accumulator is ABSENT:
                self.accumulator = fold.start(self._outer)
            return self.accumulator
        if not self.finished:
            if name == fold.variable:
                return self.first
            if name == fold.variable2:
                return self.second
        return self._outer.find(name)


AnyFrame = Frame | FoldFrame
