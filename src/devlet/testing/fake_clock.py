"""A clock whose time passes only when a test advances it.

clock = FakeClock()
async with running(partial(poll_every_ten_seconds, clock)):
    await clock.sleeping(1)   # the part has gone to sleep
    await clock.advance(10)   # it wakes, works, and sleeps again
"""

import heapq
import math
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Self

from anyio import Event
from anyio.lowlevel import checkpoint

from devlet.kit.changes import Changes

# Turns of the event loop for a woken task before the next one wakes.
_TURNS = 25


class FakeClock:
    """A `devlet.kit.clock.Clock`. Time passes only in `advance`."""

    def __init__(self, start: datetime = datetime(2025, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._numbers = count()
        self._sleepers: list[tuple[float, int, Event]] = []
        self._changes = Changes()

    @classmethod
    def at_present(cls) -> Self:
        """Return a clock that starts at the present time. A node needs it: its certificates are checked with other
        clocks."""
        return cls(datetime.now(UTC))

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await checkpoint()
            return
        sleeper = (self._elapsed + seconds, next(self._numbers), Event())
        heapq.heappush(self._sleepers, sleeper)
        self._changes.notify()
        try:
            await sleeper[2].wait()
        except BaseException:
            self._forget(sleeper)
            raise

    async def advance(self, seconds: float) -> None:
        """Let time pass. Tasks wake one by one in the order of their times, each at its own time. A task that sleeps
        again before the new time is woken again."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time cannot advance by {seconds} seconds")
        target = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            self._elapsed, _, event = heapq.heappop(self._sleepers)
            event.set()
            await self._settle()
        self._elapsed = target
        await self._settle()

    async def sleeping(self, number: int) -> None:
        """Wait until at least `number` tasks sleep on this clock."""
        await self._changes.until(lambda: len(self._sleepers) >= number)

    @property
    def wakes_at(self) -> list[float]:
        """Return the times at which tasks wake, as `monotonic` counts, the soonest first."""
        return sorted(wake for wake, _, _ in self._sleepers)

    async def _settle(self) -> None:
        for _ in range(_TURNS):
            await checkpoint()

    def _forget(self, sleeper: tuple[float, int, Event]) -> None:
        if sleeper in self._sleepers:
            self._sleepers.remove(sleeper)
            heapq.heapify(self._sleepers)
