"""The cost of an evaluation, counted unit by unit and in the same order as in the reference.

The reference keeps a stack of computed values and charges a call only if it finds all of the call's arguments there. If
an argument was never evaluated because another one failed, the call is free. To reproduce that, this module keeps the
same stack instead of adding up numbers.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from devlet.cel.values import CostExceeded, Value

SELECT_COST: Final = 1
"""The cost of a variable, and of each field or index that is looked up in it."""
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40

LIMIT_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"


class Tracker:
    """The cost so far, and the stack of computed values by node id."""

    __slots__ = ("_ids", "_places", "_values", "cost", "limit", "trace")

    def __init__(self, limit: int, trace: dict[int, Value] | None = None) -> None:
        self.cost = 0
        self.limit = limit
        self.trace = trace
        self._ids: list[int] = []
        self._values: list[Value] = []
        self._places: dict[int, list[int]] = {}

    def record(self, node: int, value: Value, cost: int = 0) -> None:
        """Record the value of a node, and its cost. Raises CostExceeded."""
        self.cost += cost
        self._places.setdefault(node, []).append(len(self._ids))
        self._ids.append(node)
        self._values.append(value)
        if self.trace is not None:
            self.trace[node] = value
        if self.cost > self.limit:
            raise CostExceeded(LIMIT_EXCEEDED, node)

    def drop(self, nodes: Iterable[int]) -> None:
        """Forget these values and everything that came after each."""
        for node in nodes:
            if places := self._places.get(node):
                self._cut(places[-1])

    def take(self, nodes: Sequence[int]) -> list[Value] | None:
        """Return the values of a call's arguments and forget them as `drop` does; None if one is missing."""
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
