"""How long a search may take: the clock that the allocator, which has none, is given."""

import math
import time
from typing import Final

from devlet.alloc.search import Limits

FILTER_TIMEOUT: Final = 10.0  # seconds, what kube-scheduler gives a node

__all__ = ["FILTER_TIMEOUT", "SearchTime"]


class SearchTime:
    """It begins now, and anew with each `restart`, but lasts no longer than `total` seconds in all. Zero is no limit.
    `exceeded` counts how often it was not enough."""

    def __init__(self, seconds: float = FILTER_TIMEOUT, total: float = math.inf) -> None:
        self._seconds = seconds
        self._last = time.monotonic() + total
        self._is_over = False
        self.exceeded = 0
        self.limits = Limits(give_up=self._give_up if seconds > 0 else None)
        self.restart()

    def restart(self) -> None:
        self._end = min(time.monotonic() + self._seconds, self._last)
        self._is_over = False

    def _give_up(self) -> bool:
        if time.monotonic() < self._end:
            return False
        self.exceeded += not self._is_over
        self._is_over = True
        return True
