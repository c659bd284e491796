"""A value that changes, and is read by any number of readers, each at its own pace."""

from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

import anyio

from devlet.kit.changes import Changes

__all__ = ["Board"]

T = TypeVar("T")


class Board(Generic[T]):
    """A reader gets the present value, and then the newest one whenever it asks again: a slow reader misses values in
    between, but never the last one. `value` is None until there is one."""

    def __init__(self) -> None:
        self.value: T | None = None
        self.readers = 0
        self._changes = Changes()

    @property
    def number(self) -> int:
        """How many values there were."""
        return self._changes.version

    def show(self, value: T) -> None:
        self.value = value
        self._changes.notify()

    async def shown(self) -> T:
        """Wait until there is a value, and return it."""
        while self.value is None:
            await self._changes.next()
        return self.value

    async def values(self, every: Callable[[T], float | None] = lambda value: None) -> AsyncGenerator[T, None]:
        """Yield the value now and after each change, and the same value again after `every(value)` seconds without a
        change (None: only after changes)."""
        self.readers += 1
        try:
            while True:
                value, seen = await self.shown(), self._changes.version
                yield value
                with anyio.move_on_after(every(value)):
                    await self._changes.after(seen)
        finally:
            self.readers -= 1
