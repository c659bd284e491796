"""The work that regular expressions cause in a thread, counted in instructions of the compiled patterns.

The count depends only on the patterns, not on the machine or on earlier compilations. A thousand instructions take less
than a millisecond.
"""

from threading import local
from typing import Self

from devlet.cel.cost import LIMIT_EXCEEDED
from devlet.cel.values import CostExceeded

__all__ = ["PatternMeter", "current"]

_local = local()


class PatternMeter:
    """Counts the work of this thread in its `with` block. Raises CostExceeded above the limit; 0 means no limit.

    With `counts_known`, patterns that were compiled before count again.
    """

    def __init__(self, limit: int = 0, *, counts_known: bool = False) -> None:
        self.limit = limit
        self.counts_known = counts_known
        self.spent = 0
        self._outer: PatternMeter | None = None

    def __enter__(self) -> Self:
        self._outer = current()
        _local.meter = self
        return self

    def __exit__(self, *_: object) -> None:
        _local.meter = self._outer

    def add(self, work: int) -> None:
        self.spent += work
        if self.limit and self.spent > self.limit:
            raise CostExceeded(LIMIT_EXCEEDED)


def current() -> PatternMeter | None:
    found: PatternMeter | None = getattr(_local, "meter", None)
    return found
