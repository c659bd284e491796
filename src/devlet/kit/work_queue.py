"""A queue of keys, in which each key is at most once and is processed by one task at a time.

A control loop adds the key of each object that changed, and reads the object only when the key is processed. So ten
changes are handled together, and a key that is added while it is being processed is processed again. A key whose
processing fails is retried with increasing delays. `add` returns at once and may be called before `run`. When `run` is
cancelled, the keys that were being processed go back into the queue.
"""

import heapq
import logging
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import checkpoint

from devlet.errors import DevletError
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock, wait_after
from devlet.kit.facts import facts

__all__ = ["WorkQueue"]

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Any)
_VOID = 1000  # void entries that the heap may have before they are removed


class WorkQueue(Generic[K]):
    """`sync` processes a key. An error that it raises is passed to `failed`, or logged by default, and the key is
    retried after `backoff`. An error that is not a DevletError is a bug: it is logged with its traceback, and the key
    is retried as well."""

    def __init__(
        self,
        sync: Callable[[K], Awaitable[None]],
        clock: Clock,
        *,
        workers: int = 50,
        backoff: Backoff = Backoff(0.005, 60.0),
        failed: Callable[[K, Exception], None] | None = None,
    ) -> None:
        self._sync = sync
        self._clock = clock
        self._workers = workers
        self._backoff = backoff
        self._failed = failed or _log
        self._ready: OrderedDict[K, None] = OrderedDict()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._later: dict[K, float] = {}  # when each is due; heap entries with another time are void
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = count()
        self._added = Changes()
        self._sooner = Changes()  # the time at which the next key is due

    def add(self, key: K) -> None:
        """Process the key as soon as a worker is free. Adding a key that is in the queue already changes nothing."""
        if key in self._working:
            self._again.add(key)
        else:
            self._ready[key] = None
            self._added.notify()

    def add_after(self, key: K, seconds: float) -> None:
        """Process the key later. Of several calls the one with the earliest time counts. `add` does not cancel it."""
        if seconds <= 0:
            return self.add(key)
        when = self._clock.monotonic() + seconds
        if when < self._later.get(key, math.inf):
            self._later[key] = when
            heapq.heappush(self._heap, (when, next(self._numbers), key))
            if self._heap[0][2] == key:
                self._sooner.notify()

    def forget(self, key: K) -> None:
        """Forget the failures of the key and when it is due. A key that is in the queue stays in the queue."""
        self._failures.pop(key, None)
        self._later.pop(key, None)
        if len(self._heap) > 2 * len(self._later) + _VOID:
            self._heap = [entry for entry in self._heap if not self._is_void(*entry)]
            heapq.heapify(self._heap)

    @property
    def is_idle(self) -> bool:
        """Return True if no key is in the queue or being processed. Keys may be due later."""
        return not self._ready and not self._working

    def __len__(self) -> int:
        """Return how many keys wait for a worker."""
        return len(self._ready)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Process keys until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_time)
                task_status.started()
                while True:
                    seen = self._added.version
                    self._start_workers(tasks)
                    await self._added.after(seen)
        finally:
            self._put_back()

    def _put_back(self) -> None:
        self._ready.update(dict.fromkeys(self._working))
        self._working.clear()
        self._again.clear()

    def _start_workers(self, tasks: TaskGroup) -> None:
        while self._ready and len(self._working) < self._workers:
            tasks.start_soon(self._work, self._take())

    def _take(self) -> K:
        key, _ = self._ready.popitem(last=False)
        self._working.add(key)
        return key

    async def _work(self, key: K) -> None:
        """Process the key, and then further ones until the queue is empty."""
        while True:
            await self._work_on(key)
            if not self._ready:
                return
            key = self._take()

    async def _work_on(self, key: K) -> None:
        try:
            await checkpoint()  # so that other tasks run even if `sync` never waits
            await self._sync(key)
        except Exception as e:
            self._retry(key, e)
        else:
            self._failures.pop(key, None)
        self._working.remove(key)
        if key in self._again:
            self._again.remove(key)
            self.add(key)

    def _retry(self, key: K, error: Exception) -> None:
        if not isinstance(error, DevletError):
            log.error("work failed unexpectedly", exc_info=error, extra=facts(key=str(key)))
        self._failed(key, error)
        attempt = self._failures.get(key, 0)
        self._failures[key] = attempt + 1
        self.add_after(key, self._backoff.delay(attempt, random.random))

    async def _keep_time(self) -> None:
        while True:
            seen = self._sooner.version
            self._release_due()
            left = self._heap[0][0] - self._clock.monotonic() if self._heap else math.inf
            await wait_after(self._sooner, seen, self._clock, left)

    def _release_due(self) -> None:
        now = self._clock.monotonic()
        while self._heap and (self._heap[0][0] <= now or self._is_void(*self._heap[0])):
            entry = heapq.heappop(self._heap)
            if not self._is_void(*entry):
                del self._later[entry[2]]
                self.add(entry[2])

    def _is_void(self, when: float, _number: int, key: K) -> bool:
        return self._later.get(key) != when


def _log(key: Any, error: Exception) -> None:
    if isinstance(error, DevletError):
        log.warning("work failed", extra=facts(key=str(key), err=error))
