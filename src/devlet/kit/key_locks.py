"""One lock for each key, made when somebody wants it and gone when nobody does.

Whoever needs several takes them in one call and at one moment, when all of them are free: nobody holds one while he
waits for another, so nobody waits in a circle, nor for a key that stands idle. A key can be given back before the
others, by any task."""

from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from anyio import Event

__all__ = ["Held", "KeyLocks"]

K = TypeVar("K", bound=Any)


class Held(Generic[K]):
    """What `hold` yields."""

    def __init__(self, locks: "KeyLocks[K]", keys: Collection[K]) -> None:
        self._locks = locks
        self._mine = set(keys)

    def release(self, key: K) -> None:
        """No error if it was given back already."""
        if key in self._mine:
            self._mine.remove(key)
            self._locks.free(key)

    def release_all(self) -> None:
        for key in list(self._mine):
            self.release(key)


class KeyLocks(Generic[K]):
    """For one key: first come, first served."""

    def __init__(self) -> None:
        self._held: set[K] = set()
        self._waiting: dict[K, deque[Event]] = {}

    @asynccontextmanager
    async def hold(self, keys: Iterable[K]) -> AsyncIterator[Held[K]]:
        """Each key once. Do not nest: what is held is waited for."""
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
        """No await between the look that finds all of them free and their being taken."""
        while (busy := self._busy(keys)) is not None:
            await self._wait(busy)
            if self._busy(keys) is not None:
                self._wake(busy)  # somebody else may be able to use it
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
