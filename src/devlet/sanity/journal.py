"""A bounded record of what a driver did, the newest entry last. Old entries are dropped so that it cannot grow."""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

import anyio

__all__ = ["Journal"]

T = TypeVar("T")


class Journal(deque[T]):
    """The newest entries. `added` counts all entries, including those that were dropped."""

    def __init__(self, kept: int) -> None:
        super().__init__(maxlen=kept)
        self.added = 0
        self._more = anyio.Event()

    def append(self, entry: T) -> None:
        super().append(entry)
        self.added += 1
        self._more.set()
        self._more = anyio.Event()

    def since(self, added: int) -> list[T]:
        """Return the entries after the first `added`."""
        return list(self)[-(self.added - added) :] if self.added > added else []

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        """Wait until a condition on the entries holds. Return False if it does not within so many seconds."""
        with anyio.move_on_after(within):
            while not holds():
                await self._more.wait()
            return True
        return holds()

    async def settle(self, quiet: float) -> None:
        """Wait until nothing was added for so many seconds, but not forever."""
        for _ in range(20):
            before = self.added
            await anyio.sleep(quiet)
            if self.added == before:
                return
