"""Time as something that is handed in, so that tests can control it.

`now` is for what people and files read; it may jump. Durations are differences of `monotonic`.
"""

import math
import time
from datetime import UTC, datetime
from typing import Protocol

import anyio


class Clock(Protocol):
    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(seconds, 0.0))


async def wait(event: anyio.Event, clock: Clock, seconds: float) -> None:
    """Until it is set, or so many seconds have passed; infinitely many are no limit."""
    async with anyio.create_task_group() as tasks:

        async def alarm() -> None:
            await clock.sleep(seconds)
            tasks.cancel_scope.cancel()

        if seconds < math.inf:
            tasks.start_soon(alarm)
        await event.wait()
        tasks.cancel_scope.cancel()
