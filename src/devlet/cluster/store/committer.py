"""Group commit: one thread makes writes durable, as many at a time as have arrived.

While a commit waits for the disk the next writes gather, so with more writers more writes share one fsync. The thread
is woken when the event loop has handled everything that is ready: if the first write woke it, the thread and the loop
would compete while the second write is prepared.

If a commit fails, everything that was prepared on top of it fails as well. The thread refuses all rows until the owner,
which has then discarded them, calls `resume`.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devlet.cluster.store.log_file import LogFile, Row
from devlet.errors import DevletError, Unavailable

Done = Callable[[list[Row], DevletError | None], None]


class _Resume:
    """A mark in the queue: the rows after it were prepared after the owner learned of the failure."""


class Committer:
    """`done` is called in the event loop once for each batch, in the order of the rows."""

    def __init__(self, log: LogFile, done: Done, *, max_batch_bytes: int = 32 << 20) -> None:
        self._log = log
        self._done = done
        self._max_batch_bytes = max_batch_bytes
        self._queue: deque[Row | _Resume | Callable[[], None]] = deque()
        self._wakeup = threading.Condition()
        self._waking = False
        self._stopping = False
        self._failure: DevletError | None = None
        self._loop = asyncio.get_running_loop()

    def submit(self, row: Row) -> None:
        self._add(row)

    def resume(self) -> None:
        self._add(_Resume())

    def run(self, job: Callable[[], None]) -> None:
        """Run a function in the thread, between two commits."""
        self._add(job)

    def _add(self, work: Row | _Resume | Callable[[], None]) -> None:
        self._queue.append(work)
        if not self._waking:
            self._waking = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = False
        with self._wakeup:
            self._wakeup.notify()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the thread while the block runs. On exit, everything that was submitted is committed first."""
        thread = threading.Thread(target=self._work, name="devlet-committer", daemon=True)
        thread.start()
        try:
            yield
        finally:
            with self._wakeup:
                self._stopping = True
                self._wakeup.notify()
            thread.join()

    def _work(self) -> None:
        while True:
            with self._wakeup:
                self._wakeup.wait_for(lambda: self._queue or self._stopping)
                if not self._queue:
                    return
                batch = self._take()
            if isinstance(batch, list):
                self._commit(batch)
            elif isinstance(batch, _Resume):
                self._failure = None
            else:
                batch()

    def _take(self) -> list[Row] | _Resume | Callable[[], None]:
        first = self._queue[0]
        if not isinstance(first, Row):
            self._queue.popleft()
            return first
        batch: list[Row] = []
        size = 0
        while self._queue and size < self._max_batch_bytes and isinstance(row := self._queue[0], Row):
            batch.append(row)
            size += len(row.body)
            self._queue.popleft()
        return batch

    def _commit(self, batch: list[Row]) -> None:
        if self._failure is None:
            try:
                self._log.append(batch)
            except DevletError as e:
                self._failure = e
            except Exception as e:
                self._failure = Unavailable(f"{self._log.path}: {e}")
        self._loop.call_soon_threadsafe(self._done, batch, self._failure)
