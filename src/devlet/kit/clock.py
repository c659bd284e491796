"""A clock that is passed as an argument, so that tests can control the time.

`now` is the time that people and files read; it may jump. Measure durations with `monotonic`.
"""

import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import anyio

from devlet.kit.changes import Changes
from devlet.kit.parts import first

__all__ = ["Clock", "SystemClock", "wait", "wait_after"]


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
    """Wait until the event is set or the seconds have passed. `math.inf` means no limit."""
    await _wait(event.wait, clock, seconds)


async def wait_after(changes: Changes, version: int, clock: Clock, seconds: float) -> None:
    """Wait for a change newer than the given version or until the seconds have passed. `math.inf` means no limit."""
    if changes.version <= version:
        await _wait(partial(changes.after, version), clock, seconds)


async def _wait(event: Callable[[], Awaitable[object]], clock: Clock, seconds: float) -> None:
    if seconds < math.inf:
        await first(partial(clock.sleep, seconds), event)
    else:
        await event()
