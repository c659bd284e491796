"""When something that failed is tried again: after a while that grows, or soon after a sign that it may work by now.

A sign that comes during a try counts for the next one: the try may have looked before."""

import random
from datetime import datetime, timedelta

from devlet.kit.backoff import Backoff

__all__ = ["Attempts"]


class Attempts:
    """`soonest` are the seconds between two tries however many signs there are. Each try is begun, and has then failed
    or succeeded."""

    def __init__(self, backoff: Backoff, soonest: float) -> None:
        self._backoff = backoff
        self._soonest = timedelta(seconds=soonest)
        self._failures = 0
        self._under_way = False
        self._sign = False
        self._last: datetime | None = None
        self.due: datetime | None = None  # None: at once

    def is_due(self, now: datetime) -> bool:
        return self.due is None or now >= self.due

    def begin(self) -> None:
        self._under_way, self._sign = True, False

    def failed(self, now: datetime) -> datetime:
        """When the next try is due."""
        self._under_way = False
        self._last = now
        self.due = now + timedelta(seconds=self._backoff.delay(self._failures, random.random))
        self._failures += 1
        if self._sign:
            self.hurry()
        return self.due

    def hurry(self) -> bool:
        """There is a sign. Whether the next try was brought forward."""
        if self._under_way:
            self._sign = True
            return False
        if self._last is None or self.due is None:
            return False
        self.due = min(self.due, self._last + self._soonest)
        return True

    def succeeded(self) -> None:
        self._failures, self._under_way, self._last, self.due = 0, False, None, None
