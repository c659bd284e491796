"""A value that changes, shown to any number of readers, each at its own pace.

A reader sees the value as it is when it comes, and then whatever is newest when it looks again: who is slow misses
values in between, never the last one.
"""

from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

import anyio

__all__ = ["Board"]

T = TypeVar("T")


class Board(Generic[T]):
    """`value` is None until something was shown."""

    def __init__(self) -> None:
        self.value: T | None = None
        self.number = 0  # how often something was shown
        self.readers = 0
        self._changed = anyio.Event()

    def show(self, value: T) -> None:
        self.value = value
        self.number += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def shown(self) -> T:
        """The value, as soon as there is one."""
        while self.value is None:
            await self._changed.wait()
        return self.value

    async def values(self, every: Callable[[T], float | None] = lambda value: None) -> AsyncGenerator[T, None]:
        """Now and at each change; and after so many seconds without one, the same again."""
        self.readers += 1
        try:
            while True:
                value, seen = await self.shown(), self.number
                yield value
                if self.number == seen:
                    with anyio.move_on_after(every(value)):
                        await self._changed.wait()
        finally:
            self.readers -= 1
