"""Wait for something that happens in another task, or in another thread: tests without `async` have their node in one.

    bell.ring()                                          # from anywhere
    await bell.until(lambda: len(calls) > 2)              # in any event loop
    bell.wait_until(lambda: len(calls) > 2, within=5.0)   # in a thread that has none

What is waited for is looked at now, and after each ring; so ring after the change, not before.
"""

import asyncio
import threading
from collections.abc import Callable

import anyio

__all__ = ["Bell"]


class Bell:
    def __init__(self) -> None:
        self._rung = threading.Condition()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, anyio.Event]] = []

    def ring(self) -> None:
        with self._rung:
            waiting, self._waiting = self._waiting, []
            self._rung.notify_all()
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def until(self, holds: Callable[[], bool]) -> None:
        while True:
            event = anyio.Event()
            with self._rung:
                if holds():
                    return
                self._waiting.append((asyncio.get_running_loop(), event))
            await event.wait()

    def wait_until(self, holds: Callable[[], bool], *, within: float) -> bool:
        """Whether it came to hold in so many seconds."""
        with self._rung:
            return self._rung.wait_for(holds, within)
