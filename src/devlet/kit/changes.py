"""Notify any number of tasks that something changed."""

from collections.abc import Callable
from typing import TypeVar

import anyio

__all__ = ["Changes"]

T = TypeVar("T")


class Changes:
    """A version that grows with each change, and a way to wait for a newer one.

        seen = changes.version
        ...                       # look at what may change, and await other things
        await changes.after(seen)

    The wait returns at once if there was a change since `seen` was read, so no change is missed. A task that is
    slow sees several changes as one. All tasks must be in the same event loop.
    """

    __slots__ = ("_next", "version")

    def __init__(self) -> None:
        self.version = 0
        self._next: anyio.Event | None = None  # made by the first task that waits

    def notify(self) -> None:
        """Count a change and wake every task that waits for one."""
        self.version += 1
        if self._next is not None:
            self._next.set()
            self._next = None

    async def after(self, version: int) -> int:
        """Wait until the version is newer than the given one, and return it."""
        while self.version <= version:
            if self._next is None:
                self._next = anyio.Event()
            await self._next.wait()
        return self.version

    async def next(self) -> int:
        """Wait for the next change from now on."""
        return await self.after(self.version)

    async def until(self, find: Callable[[], T]) -> T:
        """Call `find` now and after each change until it returns something true, and return that."""
        while not (found := find()):
            await self.next()
        return found
