"""What an evaluation costs, counted the way the reference counts it: unit by unit, in the same order.

The reference keeps a stack of the values that were computed and charges a call only if it finds all of the call's
arguments there. Some are not (an argument that was never evaluated because another one failed), and such a call is
free. That is why this keeps the same stack instead of adding up numbers.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from devlet.cel.values import CostExceeded, Value

SELECT_COST: Final = 1
"""Of a variable, and of each field or index that is looked up in it."""
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40

LIMIT_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"


class Tracker:
    """Cost so far, and the stack of computed values by the id of their node."""

    __slots__ = ("_ids", "_places", "_values", "cost", "limit", "trace")

    def __init__(self, limit: int, trace: dict[int, Value] | None = None) -> None:
        self.cost = 0
        self.limit = limit
        self.trace = trace
        self._ids: list[int] = []
        self._values: list[Value] = []
        self._places: dict[int, list[int]] = {}

    def record(self, node: int, value: Value, cost: int = 0) -> None:
        """A node has its value. Raises CostExceeded."""
        self.cost += cost
        self._places.setdefault(node, []).append(len(self._ids))
        self._ids.append(node)
        self._values.append(value)
        if self.trace is not None:
            self.trace[node] = value
        if self.cost > self.limit:
            raise CostExceeded(LIMIT_EXCEEDED, node)

    def drop(self, nodes: Iterable[int]) -> None:
        """Forget these values and all that came after each."""
        for node in nodes:
            if places := self._places.get(node):
                self._cut(places[-1])

    def take(self, nodes: Sequence[int]) -> list[Value] | None:
        """The values of the arguments of a call, forgotten like in `drop`; None if one is not there."""
        found: list[Value] = []
        for node in reversed(nodes):
            places = self._places.get(node)
            if not places:
                return None
            place = places[-1]
            found.append(self._values[place])
            self._cut(place)
        found.reverse()
        return found

    def _cut(self, place: int) -> None:
        for node in self._ids[place:]:
            self._places[node].pop()
        del self._ids[place:]
        del self._values[place:]
