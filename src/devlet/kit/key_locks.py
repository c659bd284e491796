"""One lock for each key, which exists only while it is used.

A task that needs several keys takes them in one call, at a moment when all of them are free. It holds none of them
while it waits for another, so there is no deadlock, and no key is held without being used. Each key can be released
before the others, by any task."""

from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from anyio import Event

__all__ = ["Held", "KeyLocks"]

K = TypeVar("K", bound=Any)


class Held(Generic[K]):
    """The locks that one call of `hold` took."""

    def __init__(self, locks: "KeyLocks[K]", keys: Collection[K]) -> None:
        self._locks = locks
        self._mine = set(keys)

    def release(self, key: K) -> None:
        """Release the lock of a key, unless it was released already."""
        if key in self._mine:
            self._mine.remove(key)
            self._locks.free(key)

    def release_all(self) -> None:
        for key in list(self._mine):
            self.release(key)


class KeyLocks(Generic[K]):
    """Locks by key. The waiters of a key get it in the order in which they came."""

    def __init__(self) -> None:
        self._held: set[K] = set()
        self._waiting: dict[K, deque[Event]] = {}

    @asynccontextmanager
    async def hold(self, keys: Iterable[K]) -> AsyncIterator[Held[K]]:
        """Hold the locks of these keys. Do not nest: a task would wait for a lock that it holds itself."""
        wanted = frozenset(keys)
        await self._take(wanted)
        held = Held(self, wanted)
        try:
            yield held
        finally:
            held.release_all()

    def is_held(self, key: K) -> bool:
        return key in self._held

    def free(self, key: K) -> None:
        self._held.remove(key)
        self._wake(key)

    async def _take(self, keys: frozenset[K]) -> None:
        """Take all keys at once when all are free. There is no await between the check and the taking."""
        while (busy := self._busy(keys)) is not None:
            await self._wait(busy)
            if self._busy(keys) is not None:
                self._wake(busy)  # another waiter may be able to use it
        self._held |= keys

    def _busy(self, keys: frozenset[K]) -> K | None:
        return next((key for key in keys if key in self._held), None)

    async def _wait(self, key: K) -> None:
        mine = Event()
        self._waiting.setdefault(key, deque()).append(mine)
        try:
            await mine.wait()
        except BaseException:
            if mine.is_set():
                self._wake(key)
            else:
                self._leave(key, mine)
            raise

    def _wake(self, key: K) -> None:
        if key not in self._held and key in self._waiting:
            first = self._waiting[key][0]
            self._leave(key, first)
            first.set()

    def _leave(self, key: K, mine: Event) -> None:
        self._waiting[key].remove(mine)
        if not self._waiting[key]:
            del self._waiting[key]
