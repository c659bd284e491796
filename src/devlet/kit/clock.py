"""Time as something that is handed in, so that tests can turn it themselves (`devlet.testing.fake_clock`).

`now` is for what people and files read; it may jump. Durations are differences of `monotonic`.
"""

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
