"""One watch: the present objects, then the history on disk, then what happens, in order and without a gap.

The watcher is registered before anything is read, so changes that happen meanwhile wait in its queue."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

import anyio
from msgspec import Struct

from devlet.cluster.client import EventType, VersionMatch, WatchEvent, WatchOptions
from devlet.cluster.store.ledger import Ledger
from devlet.cluster.store.records import Change, Record
from devlet.cluster.store.selection import Selection
from devlet.cluster.store.versions import parse_version
from devlet.cluster.store.watchers import Update, Watcher
from devlet.errors import Cause, Expired, InvalidObject, Unavailable
from devlet.objects.conversion import convert
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource

_CHUNK = 64  # rows of history that are read at a time
_BATCH = 64 * 1024  # bytes after which no more events are put together
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a watch begins: with the present objects, or after a version."""

    initial: bool
    marked: bool  # a bookmark says where the present objects end
    after: int


def check_options(options: WatchOptions) -> None:
    """The rules for `sendInitialEvents`; the reference words them as errors of ListOptions."""
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
    """An event that is decoded only if somebody needs it decoded: `body` is the object in its storage version, where
    the event shows it just as it is stored."""

    type: EventType
    document: Callable[[str], Document]  # in an API version
    body: bytes | None = None


class Watch:
    """Begin one with no await between `find_start` and here: what the watcher's queue does not get, this reads."""

    def __init__(self, ledger: Ledger, resource: Resource, selection: Selection, options: WatchOptions, start: Start):
        self._ledger = ledger
        self._resource = resource
        self._selection = selection
        self._options = options
        self._start = start
        self._seen = ledger.version
        self._present = present(ledger, resource, selection) if start.initial else []
        self.watcher = Watcher(
            selection,
            after=max(start.after, ledger.version),
            max_events=ledger.settings.watch_events,
            max_bytes=ledger.settings.watch_bytes,
        )

    async def batches(self) -> AsyncGenerator[list[Frame], None]:
        """Events in order; those that are there at the same time come together."""
        timeout = self._options.timeout
        deadline = anyio.current_time() + timeout if timeout is not None else float("inf")
        for record in self._present:
            yield [Frame(EventType.ADDED, partial(_shown, record), record.body)]
        self._present.clear()
        if self._start.marked:
            yield [self._bookmark(self._seen, {INITIAL_EVENTS_END: "true"})]
        if not self._start.initial:
            async for frame in self._history():
                yield [frame]
        while batch := await self._next(deadline):
            yield batch

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for frame in batch:
                    yield WatchEvent(frame.type, frame.document(self._resource.api_version))

    async def _history(self) -> AsyncIterator[Frame]:
        """Changes between the version asked for and the beginning of the queue, from disk."""
        changes = self._ledger.table(self._resource.kind).changes(self._start.after)
        changes = [change for change in changes if change.version <= self._seen]
        for i in range(0, len(changes), _CHUNK):
            for update in await self._updates(changes[i : i + _CHUNK]):
                if (type_ := update.event_for(self._selection)) is not None:
                    yield _frame(type_, update)

    async def _updates(self, changes: list[Change]) -> list[Update]:
        wanted = [version for change in changes for version in (change.version, change.previous) if version]
        rows = await self._ledger.read(wanted)
        if any(version not in rows for version in wanted):
            raise Expired(f"too old resource version: {self._start.after} ({self._ledger.compacted})")
        updates = []
        for change in changes:
            row, before = rows[change.version], rows.get(change.previous)
            old = None if before is None else Record(change.key, before.version, before.body)
            updates.append(Update(row.version, old, Record(change.key, row.version, row.body), row.deleted))
        return updates

    async def _next(self, deadline: float) -> list[Frame]:
        """The next events, or a bookmark; nothing at the end of the stream."""
        while True:
            if batch := self._taken():
                return batch
            remaining = deadline - anyio.current_time()
            if self.watcher.ended or remaining <= 0:
                return []
            something = await self.watcher.wait(min(self._ledger.settings.bookmark_every, remaining))
            # With an empty queue the reader has seen everything up to the ledger's version.
            if not something and self._options.bookmarks:
                return [self._bookmark(max(self._ledger.version, self._start.after), {})]

    def _taken(self) -> list[Frame]:
        batch: list[Frame] = []
        size = 0
        while size < _BATCH and (taken := self.watcher.take()) is not None:
            batch.append(_frame(*taken))
            size += len(taken[1].record.body)
        return batch

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


def present(ledger: Ledger, resource: Resource, selection: Selection) -> list[Record]:
    table = ledger.table(resource.kind)
    return [r for key in table.keys(selection.namespace) if selection.matches(r := table.records[key])]
