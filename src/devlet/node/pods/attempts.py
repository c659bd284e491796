"""When to repeat an attempt that failed: after a growing delay, or soon after a hint that it may succeed now.

A hint that comes during an attempt counts for the next one, because the attempt may have looked before. Delays are
measured with the monotonic clock, so setting the time of day does not change them."""

from datetime import datetime, timedelta

from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock

__all__ = ["Attempts"]


class Attempts:
    """`soonest` is the least delay in seconds between two attempts, however many hints come. Call `begin` before each
    attempt, and `failed` or `succeeded` after it."""

    def __init__(self, clock: Clock, backoff: Backoff, soonest: float) -> None:
        self._clock = clock
        self._backoff = backoff
        self._soonest = soonest
        self._failures = 0
        self._under_way = False
        self._hinted = False
        self._last: float | None = None
        self._due: float | None = None  # None: now

    def is_due(self) -> bool:
        return self._due is None or self._clock.monotonic() >= self._due

    @property
    def due(self) -> datetime:
        """When the next attempt is due, by the time of day as it is now."""
        now = self._clock.now()
        return now if self._due is None else now + timedelta(seconds=self._due - self._clock.monotonic())

    def begin(self) -> None:
        self._under_way, self._hinted = True, False

    def failed(self) -> datetime:
        """Return when the next attempt is due."""
        self._under_way = False
        self._last = self._clock.monotonic()
        self._due = self._last + self._backoff.delay(self._failures, random.random)
        self._failures += 1
        if self._hinted:
            self.hurry()
        return self.due

    def hurry(self) -> bool:
        """Take a hint. Return True if that brings the next attempt forward."""
        if self._under_way:
            self._hinted = True
            return False
        if self._last is None or self._due is None:
            return False
        self._due = min(self._due, self._last + self._soonest)
        return True

    def succeeded(self) -> None:
        self._failures, self._under_way, self._last, self._due = 0, False, None, None
