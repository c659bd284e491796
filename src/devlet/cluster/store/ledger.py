"""The state of the embedded cluster: committed objects, writes on their way to the disk, and watchers.

It belongs to one thread, the event loop. A write is checked against the newest state, committed or not, and gets its
version at once. Readers and watchers see it when it is on disk. So a change is never announced before it is durable,
and of two conflicting writes only one succeeds.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec

from devlet.cluster.store import database_files, high_water_mark, log_file
from devlet.cluster.store.committer import Committer
from devlet.cluster.store.high_water_mark import first_version
from devlet.cluster.store.log_file import LogFile, Row
from devlet.cluster.store.owners import Owners
from devlet.cluster.store.records import Change, Record, Table
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.watchers import Update, Watchers
from devlet.errors import DevletError, TooLarge, Unavailable
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.documents import Document
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import Kind

log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode
_SMALL = 16 * 1024  # bytes of an object that slow watchers may keep decoded
_PROBE_EVERY = 1.0  # seconds between attempts while the disk refuses writes
_PROBE_ROOM = 64 * 1024  # bytes beyond the write that failed


@dataclass(slots=True)
class Pending:
    """A write on its way to the disk. The document must not be changed any more."""

    record: Record
    deleted: bool
    document: Document
    error: DevletError | None = None
    _finished: bool = False
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)  # cheaper than events

    async def durable(self) -> None:
        """Wait until the write is on disk and visible. Raise an error if it failed."""
        if not self._finished:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        if self.error is not None:
            raise self.error

    def finish(self, error: DevletError | None = None) -> None:
        self.error, self._finished = error, True
        for future in self._waiting:
            if not future.done():  # its reader was cancelled
                future.set_result(None)


class Ledger:
    def __init__(self, file: LogFile, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self.watchers = Watchers(settings.watch_bytes)
        self.owners = Owners()
        self._file = file
        self._clock = clock
        self._began = clock.now().timestamp() - clock.monotonic()
        self._tables: dict[str, Table] = {}
        self._pending: dict[tuple[str, ObjectKey], Pending] = {}
        self._in_flight: dict[int, Pending] = {}
        self._history: deque[tuple[str, Change]] = deque()
        self._history_bytes = 0
        self._commits = Changes()
        self.problem: str | None = None  # why writes fail
        self._failures = Changes()
        self._refused_bytes = 0
        contents = file.contents()
        self.compacted = contents.compacted
        self.version = contents.last  # of the newest committed change
        self._next = contents.last + 1
        self._load()

    def _load(self) -> None:
        for row in self._file.rows():
            record = Record((row.namespace, row.name), row.version, row.body)
            try:
                _ = record.head  # decoded now, to find damage now
            except msgspec.DecodeError as e:
                raise log_file.damaged(self._file.path, f"version {row.version}: {e}") from e
            self._put(row, record, min(row.at, self.time()))
        for table in self._tables.values():
            table.forget(self.compacted)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Allow writes while the block runs. On exit, wait for the writes that were submitted."""
        self._file.start_writing()
        self._committer = Committer(self._file, self._committed)
        with self._committer.running():
            yield
            self.watchers.end_all()

    def time(self) -> int:
        """Return the seconds since the epoch by a clock that does not jump: the time of day when the file was opened,
        plus the time that has passed since."""
        return int(self._began + self._clock.monotonic())

    def freeze(self) -> None:
        """Refuse all further writes, for good."""
        self._file.freeze()

    def table(self, kind: Kind) -> Table:
        return self._table(kind.key)

    def _table(self, key: str) -> Table:
        if (table := self._tables.get(key)) is None:
            table = self._tables[key] = Table()
        return table

    def newest(self, kind: Kind, key: ObjectKey) -> Record | None:
        """Return the state against which the next write must be checked."""
        pending = self._pending.get((kind.key, key))
        if pending is not None:
            return None if pending.deleted else pending.record
        return self.table(kind).get(key)

    async def settled(self, kind: Kind, key: ObjectKey) -> None:
        """Wait until the newest state of the object is durable."""
        if (pending := self._pending.get((kind.key, key))) is not None:
            await pending.durable()

    def write(self, kind: Kind, key: ObjectKey, document: Document, *, deleted: bool = False) -> Pending:
        """Give the document its version and submit it. `deleted` means that this is the object's last state."""
        version = self._next
        document["metadata"]["resourceVersion"] = str(version)
        body = _encode(document)
        self.check_size(kind, key, body)
        self._next += 1
        before = self.newest(kind, key)
        key = before.key if before else key  # the same object for all changes in the history saves memory
        record = Record.of(key, version, body, document)
        pending = Pending(record, deleted, document)
        self._pending[kind.key, key] = self._in_flight[version] = pending
        at = int(self._clock.now().timestamp())
        self._committer.submit(Row(version, at, kind.key, *key, deleted, before.version if before else 0, body))
        return pending

    def check_size(self, kind: Kind, key: ObjectKey, body: bytes) -> None:
        """Raise TooLarge if the object exceeds the limit."""
        if len(body) > (limit := self.settings.max_object_bytes):
            raise TooLarge(f'{kind.plural} "{key[1]}": {len(body)} bytes are over the limit of {limit} bytes')

    async def reach(self, version: int) -> bool:
        """Wait until `version` is committed. Return False if that takes longer than the settings allow."""
        with anyio.move_on_after(self.settings.version_wait):
            await self._commits.until(lambda: self.version >= version)
        return self.version >= version

    async def read(self, versions: list[int]) -> dict[int, Row]:
        """Return rows from the disk, without those that were compacted away."""
        return await anyio.to_thread.run_sync(self._file.read, versions) if versions else {}

    def compact(self) -> None:
        """Forget history that is older, or larger, than the settings allow."""
        horizon = self.time() - self.settings.history_age
        to = self.compacted
        while self._history:
            _, change = self._history[0]
            old = change.at < horizon and len(self._history) > self.settings.history_events
            if not old and self._history_bytes <= self.settings.history_bytes:
                break
            to = change.version
            self._history.popleft()
            self._history_bytes -= change.size
        if to > self.compacted:
            self._forget(to)

    def _forget(self, to: int) -> None:
        gone = [change for table in self._tables.values() for change in table.forget(to)]
        superseded = [c.previous for c in gone if c.previous] + [c.version for c in gone if c.deleted]
        self.compacted = to
        last = self.version
        self._committer.run(lambda: self._compact_file(to, last, superseded))

    def _compact_file(self, to: int, last: int, superseded: list[int]) -> None:
        try:
            self._file.compact(to, last, superseded)
        except DevletError as e:
            log.warning("history not compacted", extra=facts(err=e))

    def _committed(self, batch: list[Row], error: DevletError | None) -> None:
        """Handle a batch that the committer finished. Called in the event loop."""
        if error is not None:
            self._abandon(batch, error)
            return
        self._succeeded()
        at = self.time()
        for row in batch:
            pending = self._in_flight.pop(row.version)
            key = (row.kind, pending.record.key)
            if self._pending.get(key) is pending:
                del self._pending[key]
            update = self._put(row, pending.record, at, pending.document)
            self.watchers.publish(row.kind, update)
            pending.finish()
        self._commits.notify()

    def _abandon(self, batch: list[Row], error: DevletError) -> None:
        """Fail all writes that are in flight: they were prepared on top of the failed ones. The committer refuses them
        until it reads our `resume`, so later reports about them are ignored."""
        if not any(row.version in self._in_flight for row in batch):
            return
        self._refused_bytes = max(self._refused_bytes, sum(len(row.body) for row in batch))
        self._failed(error, len(self._in_flight))
        for pending in self._in_flight.values():
            pending.finish(error)
        self._in_flight.clear()
        self._pending.clear()
        self._committer.resume()

    def _failed(self, error: DevletError, count: int) -> None:
        """Log the first failure only: callers get an error for each of their writes."""
        level = logging.ERROR if self.problem is None else logging.DEBUG
        log.log(level, "store cannot write", extra=facts(err=error, lost=count))
        self.problem = str(error)
        self._failures.notify()

    def _succeeded(self) -> None:
        if self.problem is not None:
            log.warning("store writes again", extra=facts(path=self._file.path))
            self.problem, self._refused_bytes = None, 0

    @property
    def files(self) -> Collection[Path]:
        return self._file.in_place

    def check_files(self) -> None:
        """Fail from now on if a file was removed, without waiting for the next write."""
        try:
            self._file.check_in_place()
        except Unavailable as e:
            self._failed(e, 0)

    async def probe_while_failing(self) -> None:
        """Notice that writes succeed again, even if no client writes. Run until cancelled."""
        loop = asyncio.get_running_loop()

        def probe() -> None:
            try:
                self._file.probe(self._refused_bytes + _PROBE_ROOM)
            except DevletError as e:
                log.debug("store still cannot write", extra=facts(err=e))
            else:
                loop.call_soon_threadsafe(self._succeeded)

        while True:
            await self._failures.until(lambda: self.problem is not None)
            await self._clock.sleep(_PROBE_EVERY)
            if self.problem is not None:
                self._committer.run(probe)

    def _put(self, row: Row, record: Record, at: int, document: Document | None = None) -> Update:
        table = self._table(row.kind)
        old = table.get(record.key)
        record.at = at
        superseded = (len(old.body) if old else 0) + (len(row.body) if row.deleted else 0)
        change = Change(row.version, at, record.key, row.previous, row.deleted, superseded, len(row.body))
        if row.deleted:
            table.remove(change)
        else:
            table.put(record, change)
        if row.version > self.compacted:
            self._history.append((row.kind, change))
            self._history_bytes += change.size
        self.version = max(self.version, row.version)
        self.owners.update(row.kind, old, None if row.deleted else record)
        return Update(row.version, old, record, row.deleted, document if len(row.body) < _SMALL else None)


def open_file(path: Path, clock: Clock) -> LogFile:
    """Open the log at `path`, or create it. The files of a database that was moved away are kept under other names."""
    with log_file.translated(path):
        database_files.finish_repair(path)
        if not path.exists():
            if database_files.log(path).exists():
                database_files.keep_copies(path, clock.now())
                database_files.remove_log(path)
            mark = high_water_mark.read(database_files.mark(path))
            log_file.create(path, first_version(mark, clock.now()))
    file = LogFile(path)
    if file.mark is None and database_files.mark(path).exists():
        log.warning("high-water mark is damaged and starts over", extra=facts(path=database_files.mark(path)))
    return file
