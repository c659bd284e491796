"""The time limit of a search: the allocator has no clock of its own."""

import math
import time
from typing import Final

from devlet.alloc.search import Limits

FILTER_TIMEOUT: Final = 10.0  # seconds per node, as in kube-scheduler

__all__ = ["FILTER_TIMEOUT", "SearchTime"]


class SearchTime:
    """A limit that starts now and again with each `restart`, and ends after `total` seconds at the latest. Zero means
    no limit. `exceeded` counts how often time was up."""

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
