"""Keys that wait to be worked on, each at most once in the queue and by one task at a time.

A control loop adds the key of whatever changed and looks at the world only when the key's turn comes; so ten changes
cost one look, and a key that is added while it is worked on is worked on again. What fails is tried again, later each
time. `add` returns at once and may be called before `run`; a `run` that is cancelled puts back what it was working on.
"""

import heapq
import logging
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
from devlet.kit.clock import Clock
from devlet.kit.facts import facts

__all__ = ["WorkQueue"]

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Any)
_VOID = 1000  # entries of the heap that may be void before they are swept out


class WorkQueue(Generic[K]):
    """`sync` does the work; whatever it raises is told to `failed` (without one, logged) and tried again after
    `backoff`. An error that is no DevletError is a bug, logged as one, and tried again too."""

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
        self._later: dict[K, float] = {}  # when, as the clock counts; entries of the heap that say otherwise are void
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = count()
        self._added = anyio.Event()
        self._sooner = anyio.Event()

    def add(self, key: K) -> None:
        """Work on it as soon as somebody is free. Once is enough, however often it is added before that."""
        if key in self._working:
            self._again.add(key)
        else:
            self._ready[key] = None
            self._added.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Work on it in a while. Of several such wishes the soonest counts; `add` does not fulfil it."""
        if seconds <= 0:
            return self.add(key)
        when = self._clock.monotonic() + seconds
        if when < self._later.get(key, float("inf")):
            self._later[key] = when
            heapq.heappush(self._heap, (when, next(self._numbers), key))
            if self._heap[0][2] == key:
                self._sooner.set()

    def forget(self, key: K) -> None:
        """Its failures and what was planned for later. What is ready or worked on stays so."""
        self._failures.pop(key, None)
        self._later.pop(key, None)
        if len(self._heap) > 2 * len(self._later) + _VOID:
            self._heap = [entry for entry in self._heap if not self._is_void(*entry)]
            heapq.heapify(self._heap)

    @property
    def is_idle(self) -> bool:
        """Nothing is worked on or ready to be; something may be planned for later."""
        return not self._ready and not self._working

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._ready)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_time)
                task_status.started()
                while True:
                    self._added = anyio.Event()
                    self._start_workers(tasks)
                    await self._added.wait()
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
        """And on whatever is ready after it."""
        while True:
            await self._work_on(key)
            if not self._ready:
                return
            key = self._take()

    async def _work_on(self, key: K) -> None:
        try:
            await checkpoint()  # work that never waits must not keep the others from theirs
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
            log.error("work broke off", exc_info=error, extra=facts(key=str(key)))
        self._failed(key, error)
        attempt = self._failures.get(key, 0)
        self._failures[key] = attempt + 1
        self.add_after(key, self._backoff.delay(attempt, random.random))

    async def _keep_time(self) -> None:
        while True:
            self._sooner = anyio.Event()
            self._release_due()
            async with anyio.create_task_group() as tasks:
                if self._heap:
                    tasks.start_soon(self._wake_at, self._heap[0][0], self._sooner)
                await self._sooner.wait()
                tasks.cancel_scope.cancel()

    def _release_due(self) -> None:
        now = self._clock.monotonic()
        while self._heap and (self._heap[0][0] <= now or self._is_void(*self._heap[0])):
            entry = heapq.heappop(self._heap)
            if not self._is_void(*entry):
                del self._later[entry[2]]
                self.add(entry[2])

    def _is_void(self, when: float, _number: int, key: K) -> bool:
        return self._later.get(key) != when

    async def _wake_at(self, when: float, event: anyio.Event) -> None:
        await self._clock.sleep(when - self._clock.monotonic())
        event.set()


def _log(key: Any, error: Exception) -> None:
    if isinstance(error, DevletError):
        log.warning("work failed", extra=facts(key=str(key), err=error))
