"""One lock for each key, made when somebody wants it and gone when nobody does.

Whoever needs several takes them in one call: they are taken in their order, so nobody waits in a circle. A key can be
given back before the others, by any task."""

from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from anyio import Event

__all__ = ["Held", "KeyLocks"]

K = TypeVar("K", bound=Any)  # can be compared


class Held(Generic[K]):
    """What `hold` yields."""

    def __init__(self, locks: "KeyLocks[K]") -> None:
        self._locks = locks
        self._mine: dict[K, Event] = {}

    async def take(self, key: K) -> None:
        self._mine[key] = await self._locks.wait(key)

    def release(self, key: K) -> None:
        """No error if it was given back already."""
        if (mine := self._mine.pop(key, None)) is not None:
            self._locks.leave(key, mine)

    def release_all(self) -> None:
        for key in list(self._mine):
            self.release(key)


class KeyLocks(Generic[K]):
    """Fair: first come, first served."""

    def __init__(self) -> None:
        self._queues: dict[K, deque[Event]] = {}

    @asynccontextmanager
    async def hold(self, keys: Iterable[K]) -> AsyncIterator[Held[K]]:
        """Each key once. Do not nest: what is held is waited for."""
        held: Held[K] = Held(self)
        try:
            for key in sorted(set(keys)):
                await held.take(key)
            yield held
        finally:
            held.release_all()

    def is_held(self, key: K) -> bool:
        return key in self._queues

    async def wait(self, key: K) -> Event:
        queue = self._queues.setdefault(key, deque())
        mine = Event()
        queue.append(mine)
        if queue[0] is not mine:
            try:
                await mine.wait()
            except BaseException:
                self.leave(key, mine)
                raise
        return mine

    def leave(self, key: K, mine: Event) -> None:
        queue = self._queues[key]
        queue.remove(mine)
        if queue:
            queue[0].set()
        else:
            del self._queues[key]
