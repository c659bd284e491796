"""One watch: the present objects, then all changes after that, in order and without a gap.

A watch reads from the store only as fast as its reader reads from it. Versions that are no longer in memory by then are
read from the history on disk.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice

import anyio
from anyio.lowlevel import checkpoint
from msgspec import Struct

from devlet.cluster.client import EventType, VersionMatch, WatchEvent, WatchOptions
from devlet.cluster.store.ledger import Ledger
from devlet.cluster.store.log_file import Row
from devlet.cluster.store.records import Change, Record
from devlet.cluster.store.selection import Selection, parse_version
from devlet.cluster.store.watchers import Update, Watcher
from devlet.errors import Cause, Expired, InvalidObject, Unavailable
from devlet.objects.conversion import convert
from devlet.objects.documents import Document
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import Resource

_CHUNK = 64  # keys, or changes of the history, that are looked at together
_BATCH = 16 << 10  # bytes after which a batch gets no more events
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a watch: with the present objects, or after a version."""

    initial: bool
    marked: bool  # a bookmark says where the present objects end
    after: int


def check_options(options: WatchOptions) -> None:
    """Check the options for `sendInitialEvents`. Kubernetes words the errors as errors of ListOptions."""
    causes = []
    if options.send_initial_events is not None and options.version_match is not VersionMatch.NOT_OLDER_THAN:
        text = f"Forbidden: sendInitialEvents requires setting resourceVersionMatch to {VersionMatch.NOT_OLDER_THAN}"
        causes.append(Cause("FieldValueForbidden", text, "resourceVersionMatch"))
    if options.send_initial_events is None and options.version_match is not VersionMatch.ANY:
        text = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(Cause("FieldValueForbidden", text, "resourceVersionMatch"))
    if causes:
        raise InvalidObject("ListOptions.meta.k8s.io", "", causes)


async def find_start(ledger: Ledger, options: WatchOptions) -> Start:
    check_options(options)
    version = parse_version(options.resource_version)
    if options.send_initial_events:
        if version and not await ledger.reach(version):
            raise Unavailable(f"Too large resource version: {version}, current: {ledger.version}")
        return Start(True, options.bookmarks, ledger.version)
    if options.send_initial_events is None and not version:
        return Start(True, options.bookmarks, ledger.version)
    if version and version < ledger.compacted:
        raise Expired(f"too old resource version: {version} ({ledger.compacted})")
    return Start(False, False, version or ledger.version)


class Frame(Struct, frozen=True):
    """An event that is decoded only when needed. `body` is the object in its storage version if the event shows it
    exactly as it is stored."""

    type: EventType
    document: Callable[[str], Document]  # in an API version
    body: bytes | None = None


Batch = list[Frame]


class Watch:
    """A watch that misses nothing, if there is no await between `find_start` and `running`.

    While its reader does nothing, it holds only the keys of the next _CHUNK present objects, and the events that the
    reader has: up to _BATCH bytes, or a single larger event."""

    def __init__(self, ledger: Ledger, resource: Resource, selection: Selection, options: WatchOptions, start: Start):
        self._ledger = ledger
        self._table = ledger.table(resource.kind)
        self._resource = resource
        self._selection = selection
        self._options = options
        self._start = start
        self._watcher = Watcher(selection, after=start.after)

    @contextmanager
    def running(self) -> Iterator[None]:
        kind = self._resource.kind.key
        with self._ledger.watchers.added(kind, self._watcher, self._ledger.version) as self._recent:
            yield

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Yield events in order, in batches of those that are available at the same time. The reader may clear a
        batch, so that the objects are not kept while they are being sent."""
        timeout = self._options.timeout
        deadline = anyio.current_time() + timeout if timeout is not None else float("inf")
        if self._start.initial:
            async with aclosing(self._initial()) as initial:
                async for batch in initial:
                    yield batch
        if self._start.marked:
            yield [self._bookmark(self._start.after, {INITIAL_EVENTS_END: "true"})]
        while batch := await self._next(deadline):
            yield batch

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for frame in batch:
                    yield WatchEvent(frame.type, frame.document(self._resource.api_version))

    async def _initial(self) -> AsyncGenerator[Batch, None]:
        """Yield the objects as they were when the watch began."""
        batch: Batch = []
        size, after = 0, None
        while True:
            await checkpoint()
            planned, after = self._planned(after)
            for key, version in planned:
                record = self._table.get(key)
                if record is None or record.version != version:
                    record = await self._superseded(key, version)
                if self._selection.matches(record):
                    batch.append(Frame(EventType.ADDED, partial(_shown, record), record.body))
                    size += len(record.body)
                if size >= _BATCH:
                    del record
                    yield batch
                    batch, size = [], 0
            if after is None:
                break
        if batch:
            yield batch

    def _planned(self, after: ObjectKey | None) -> tuple[list[tuple[ObjectKey, int]], ObjectKey | None]:
        """Return the next keys, with the version that each had when the watch began, and the key to continue after;
        None at the end."""
        table, namespace, began = self._table, self._selection.namespace, self._start.after
        keys = list(islice(table.keys(namespace, after), _CHUNK))
        until = keys[-1] if len(keys) == _CHUNK else None
        versions = {key: table.records[key].version for key in keys}
        if table.version > began:
            self._check(began)
            for key, version in table.versions_at(began).items():
                follows = (after is None or key > after) and (until is None or key <= until)
                if follows and namespace in ("", key[0]):
                    versions[key] = version
        return sorted((key, version) for key, version in versions.items() if version), until

    async def _superseded(self, key: ObjectKey, version: int) -> Record:
        row = (await self._ledger.read([version])).get(version)
        if row is None:
            raise self._expired(version)
        return Record(key, version, row.body)

    async def _next(self, deadline: float) -> Batch:
        """Return the next events, or a bookmark; nothing at the end of the stream."""
        every = self._ledger.settings.bookmark_every
        while not self._watcher.ended:
            if batch := await self._taken():
                return batch
            now = anyio.current_time()
            if now >= deadline:
                break
            await self._watcher.wait(min(every, deadline - now))
            # Without new events the reader has seen everything up to the ledger's version.
            if self._is_idle and self._options.bookmarks:
                return [self._bookmark(max(self._ledger.version, self._start.after), {})]
        return []

    @property
    def _is_idle(self) -> bool:
        return not self._watcher.ended and self._watcher.position >= self._recent.newest

    async def _taken(self) -> Batch:
        """Return the next events, from memory or from disk; none if there are none."""
        while self._watcher.position < self._recent.newest:
            in_memory = self._watcher.position >= self._recent.start
            if batch := self._batch(self._recent.after(self._watcher.position) if in_memory else await self._older()):
                return batch
        return []

    def _batch(self, updates: Iterable[Update]) -> Batch:
        batch: Batch = []
        size = 0
        for update in updates:
            self._watcher.position = update.version
            if (type_ := update.event_for(self._selection)) is not None:
                batch.append(_frame(type_, update))
                size += len(update.record.body)
                if size >= _BATCH:
                    break
        return batch

    async def _older(self) -> list[Update]:
        """Return the next changes of the history, of up to _BATCH bytes, or a single larger one."""
        position, until = self._watcher.position, self._recent.start
        self._check(position)
        changes: list[Change] = []
        size = 0
        for change in self._table.changes(position, _CHUNK):
            size += change.length + change.size
            if change.version > until or (changes and size > _BATCH):
                break
            changes.append(change)
        if not changes:
            self._watcher.position = until
            return []
        wanted = [version for change in changes for version in (change.version, change.previous) if version]
        rows = await self._ledger.read(wanted)
        if any(version not in rows for version in wanted):
            raise self._expired(position)
        return [_update(change, rows) for change in changes]

    def _check(self, version: int) -> None:
        """Raise Expired if the history no longer has all changes after that version."""
        if version < self._ledger.compacted:
            raise self._expired(version)

    def _expired(self, version: int) -> Expired:
        return Expired(f"too old resource version: {version} ({self._ledger.compacted})")

    def _bookmark(self, version: int, annotations: dict[str, str]) -> Frame:
        metadata: Document = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        kind = self._resource.kind.kind
        return Frame(EventType.BOOKMARK, lambda v: {"kind": kind, "apiVersion": v, "metadata": metadata})


def _frame(type_: EventType, update: Update) -> Frame:
    as_stored = update.deleted or type_ is not EventType.DELETED
    return Frame(type_, partial(update.document, type_), update.record.body if as_stored else None)


def _shown(record: Record, api_version: str) -> Document:
    return convert(record.document(), api_version)


def _update(change: Change, rows: dict[int, Row]) -> Update:
    row, before = rows[change.version], rows.get(change.previous)
    old = None if before is None else Record(change.key, before.version, before.body)
    return Update(row.version, old, Record(change.key, row.version, row.body), row.deleted)
