"""The CDI specs of this moment, for many who ask at once.

Looking at the directories takes a thread, and only one may look at a time. Whoever asks gets what was found by a look
that began after the question, because a driver may have written a spec just before; all who wait for the same look
share it."""

import anyio

from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.registry import Registry

__all__ = ["CurrentSpecs"]


class CurrentSpecs:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._registry = Registry()
        self._looking = anyio.Lock()
        self._asked = 0  # questions so far
        self._answered = 0  # the first so many of them were there before the newest look began

    async def registry(self) -> Registry:
        self._asked += 1
        number = self._asked
        async with self._looking:
            if self._answered < number:
                waiting = self._asked
                self._registry = await anyio.to_thread.run_sync(self._cache.refresh)
                self._answered = waiting
            return self._registry
