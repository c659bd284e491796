"""When something that failed is tried again: after a while that grows, or soon after a sign that it may work by now.

A sign that comes during a try counts for the next one: the try may have looked before. Time is measured, not read from
the wall: that clock may be set."""

from datetime import datetime, timedelta

from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock

__all__ = ["Attempts"]


class Attempts:
    """`soonest` are the seconds between two tries however many signs there are. Each try is begun, and has then failed
    or succeeded."""

    def __init__(self, clock: Clock, backoff: Backoff, soonest: float) -> None:
        self._clock = clock
        self._backoff = backoff
        self._soonest = soonest
        self._failures = 0
        self._under_way = False
        self._sign = False
        self._last: float | None = None
        self._due: float | None = None  # None: at once

    def is_due(self) -> bool:
        return self._due is None or self._clock.monotonic() >= self._due

    @property
    def due(self) -> datetime:
        """As the clock on the wall goes now."""
        now = self._clock.now()
        return now if self._due is None else now + timedelta(seconds=self._due - self._clock.monotonic())

    def begin(self) -> None:
        self._under_way, self._sign = True, False

    def failed(self) -> datetime:
        """When the next try is due."""
        self._under_way = False
        self._last = self._clock.monotonic()
        self._due = self._last + self._backoff.delay(self._failures, random.random)
        self._failures += 1
        if self._sign:
            self.hurry()
        return self.due

    def hurry(self) -> bool:
        """There is a sign. Whether the next try was brought forward."""
        if self._under_way:
            self._sign = True
            return False
        if self._last is None or self._due is None:
            return False
        self._due = min(self._due, self._last + self._soonest)
        return True

    def succeeded(self) -> None:
        self._failures, self._under_way, self._last, self._due = 0, False, None, None
