"""Long computations beside the event loop, a few at a time, in the order in which they came.

Python runs one thread at a time and switches between threads every few milliseconds. So the loop stays responsive while
a thread computes, but each further thread delays it more. A long single call into C still delays the loop, so such
calls have limits of their own.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import anyio.to_thread

from devlet.errors import TooManyRequests

__all__ = ["AT_ONCE", "MAX_WAITING", "HeavyWork"]

T = TypeVar("T")

AT_ONCE = 2  # computations, of different owners
MAX_WAITING = 100  # computations of one owner, including the one that runs
RETRY_AFTER = 1.0  # seconds


class HeavyWork:
    """Runs at most one computation of each owner at a time, so no owner delays the others by more than one."""

    def __init__(self, *, at_once: int = AT_ONCE, max_waiting: int = MAX_WAITING) -> None:
        self._at_once = anyio.Semaphore(at_once)
        self._threads = anyio.CapacityLimiter(at_once)
        self._max_waiting = max_waiting
        self._waiting: Counter[str] = Counter()
        self._turns: dict[str, anyio.Lock] = {}

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Return what `work` returns. It runs to its end even if the caller is cancelled. Raise TooManyRequests if too
        many computations of this owner wait already."""
        async with self._turn(owner), self._at_once:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)

    @asynccontextmanager
    async def _turn(self, owner: str) -> AsyncIterator[None]:
        if self._waiting[owner] >= self._max_waiting:
            raise TooManyRequests(f"{self._max_waiting} large requests of {owner} are waiting already: try again later")
        self._waiting[owner] += 1
        try:
            async with self._turns.setdefault(owner, anyio.Lock()):
                yield
        finally:
            self._waiting[owner] -= 1
            if not self._waiting[owner]:
                del self._waiting[owner], self._turns[owner]
