"""What has happened, the newest last. One that floods must not fill the memory: the oldest are forgotten."""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

import anyio

__all__ = ["Journal"]

T = TypeVar("T")


class Journal(deque[T]):
    """`added` counts those that are forgotten, too."""

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
        """Those after the first so many."""
        return list(self)[-(self.added - added) :] if self.added > added else []

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        """Whether it came to hold, by something that was added, in so many seconds."""
        with anyio.move_on_after(within):
            while not holds():
                await self._more.wait()
            return True
        return holds()

    async def settle(self, quiet: float) -> None:
        """Until nothing has been added for so many seconds; a flood is not waited for."""
        for _ in range(20):
            before = self.added
            await anyio.sleep(quiet)
            if self.added == before:
                return
