"""When something that failed is tried again: after a while that grows, or soon after a sign that it may work by now."""

import random
from datetime import datetime, timedelta

from devlet.kit.backoff import Backoff

__all__ = ["Attempts"]


class Attempts:
    """`soonest` are the seconds between two tries however many signs there are."""

    def __init__(self, backoff: Backoff, soonest: float) -> None:
        self._backoff = backoff
        self._soonest = timedelta(seconds=soonest)
        self._failures = 0
        self._last: datetime | None = None
        self.due: datetime | None = None  # None: at once

    def is_due(self, now: datetime) -> bool:
        return self.due is None or now >= self.due

    def failed(self, now: datetime) -> datetime:
        """When the next try is due."""
        self._last = now
        self.due = now + timedelta(seconds=self._backoff.delay(self._failures, random.random))
        self._failures += 1
        return self.due

    def hurry(self) -> bool:
        """Whether there is anything to be tried again."""
        if self._last is None or self.due is None:
            return False
        self.due = min(self.due, self._last + self._soonest)
        return True

    def succeeded(self) -> None:
        self._failures, self._last, self.due = 0, None, None
