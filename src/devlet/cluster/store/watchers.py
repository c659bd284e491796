"""The watchers of each kind, and the changes that some of them have yet to see.

A watcher has a position but no queue, so it holds nothing, however far it is behind. All watchers of a kind share one
copy of its newest changes in memory. A change stays there until every watcher has seen it, or until the budget for all
kinds together is used up. A watcher that is further behind reads the history on disk. So no watcher waits for another,
and none misses a change.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from devlet.cluster.client import EventType
from devlet.cluster.store.records import Record
from devlet.cluster.store.selection import Selection
from devlet.objects.conversion import convert
from devlet.objects.documents import Document

_UPDATE_BYTES = 1_024  # of an update without its objects
_TRIM_EVERY = 64  # changes …
_TRIM_BYTES = 1 << 20  # … or bytes, after which those that every watcher has seen are dropped


@dataclass(slots=True)
class Update:
    """One committed change. `record` is the new state, or the last one if the object was deleted. `written` is the same
    state as a document, if the writer has it already. The writer shares it, so it must not be changed."""

    version: int
    old: Record | None
    record: Record
    deleted: bool
    written: Document | None = None
    _documents: dict[tuple[bool, str], Document] | None = field(default_factory=dict)

    @property
    def pinned(self) -> int:
        """Return the bytes that are in memory because of this update. The new state of an object does not count: it is
        in memory in any case, and counts for the later update that replaces it."""
        old = len(self.old.body) if self.old else 0
        return _UPDATE_BYTES + old + (len(self.record.body) if self.deleted else 0)

    def event_for(self, selection: Selection) -> EventType | None:
        """Return the event for a reader that sees only the selection."""
        was = self.old is not None and selection.matches(self.old)
        is_ = not self.deleted and selection.matches(self.record)
        if is_:
            return EventType.MODIFIED if was else EventType.ADDED
        return EventType.DELETED if was else None

    def document(self, type_: EventType, api_version: str) -> Document:
        """Return the object as the event shows it. It is decoded once for all watchers that keep up."""
        # An object that left the selection is shown in its last matching state, at the version of the change.
        left = type_ is EventType.DELETED and not self.deleted
        if self._documents is None:
            return self._decoded(left, api_version)
        if (found := self._documents.get((left, api_version))) is None:
            found = self._decoded(left, api_version)
            self._documents[left, api_version] = found
        return found

    def age(self) -> None:
        """Keep no decoded documents from now on: they are several times as large as the stored bytes."""
        self.written = self._documents = None

    def _decoded(self, left: bool, api_version: str) -> Document:
        if not left:
            return convert(self.written or self.record.document(), api_version)
        assert self.old is not None
        document = self.old.document()
        document["metadata"]["resourceVersion"] = str(self.version)
        return convert(document, api_version)


class Watcher:
    """The position of one reader, which has seen all changes of its selection up to `position`."""

    def __init__(self, selection: Selection, *, after: int) -> None:
        self._selection = selection
        self.position = after
        self._arrived = asyncio.Event()
        self.ended = False

    def offer(self, update: Update) -> None:
        """Handle a new change. The watcher must have seen all changes before it."""
        if update.version > self.position:
            if update.event_for(self._selection) is None:
                self.position = update.version
            else:
                self._arrived.set()

    def end(self) -> None:
        """End the reader's stream at its present position."""
        self.ended = True
        self._arrived.set()

    async def wait(self, seconds: float) -> None:
        """Wait for a new change, the end, or until the seconds have passed. Call it only if there is nothing left to
        take."""
        if self.ended:
            return
        self._arrived = asyncio.Event()
        # A cancel scope would do the same, for half as much again per event (measured with 100 watchers).
        timer = asyncio.get_running_loop().call_later(seconds, self._arrived.set)
        try:
            await self._arrived.wait()
        finally:
            timer.cancel()


class Recent:
    """The newest changes of one kind and its watchers. It has all changes above `start`."""

    def __init__(self, version: int) -> None:
        self.start = version
        self.newest = version  # of all that were published
        self.bytes = 0
        self.watchers: set[Watcher] = set()
        self._updates: deque[Update] = deque()
        self._untrimmed = 0
        self._untrimmed_bytes = 0

    def publish(self, update: Update) -> None:
        before, self.newest = self.newest, update.version
        self._updates.append(update)
        self.bytes += update.pinned
        if len(self._updates) > _TRIM_EVERY:
            self._updates[-_TRIM_EVERY - 1].age()
        for watcher in self.watchers:
            if watcher.position >= before:
                watcher.offer(update)
        self._untrimmed += 1
        self._untrimmed_bytes += update.pinned
        if self._untrimmed >= _TRIM_EVERY or self._untrimmed_bytes >= _TRIM_BYTES:
            self.trim()

    def after(self, version: int) -> Iterator[Update]:
        """Yield the changes above a version, which must not be below `start`."""
        for i in range(bisect_right(self._updates, version, key=lambda update: update.version), len(self._updates)):
            yield self._updates[i]

    def trim(self) -> None:
        """Drop the changes that every watcher has seen."""
        seen = min((watcher.position for watcher in self.watchers), default=self.newest)
        while self._updates and self._updates[0].version <= seen:
            self.drop_oldest()
        self._untrimmed = self._untrimmed_bytes = 0

    def drop_oldest(self) -> None:
        update = self._updates.popleft()
        self.start = update.version
        self.bytes -= update.pinned


class Watchers:
    """All watchers, by the storage key of the kind they watch."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kinds: dict[str, Recent] = {}

    @property
    def bytes(self) -> int:
        """Return the bytes of the changes that some watcher has yet to see."""
        return sum(recent.bytes for recent in self._kinds.values())

    @contextmanager
    def added(self, kind: str, watcher: Watcher, version: int) -> Iterator[Recent]:
        """Add a watcher while the block runs. `version` is that of the newest committed change."""
        recent = self._kinds.get(kind)
        if recent is None:
            recent = self._kinds[kind] = Recent(version)
        recent.watchers.add(watcher)
        try:
            yield recent
        finally:
            recent.watchers.discard(watcher)
            if not recent.watchers:
                del self._kinds[kind]
            elif watcher.position < recent.newest:
                recent.trim()

    def publish(self, kind: str, update: Update) -> None:
        if (recent := self._kinds.get(kind)) is None:
            return
        recent.publish(update)
        while self.bytes > self._max_bytes:
            max(self._kinds.values(), key=lambda recent: recent.bytes).drop_oldest()

    def trim(self) -> None:
        """Drop the changes that every watcher has seen."""
        for recent in self._kinds.values():
            recent.trim()

    def end_all(self) -> None:
        for recent in self._kinds.values():
            for watcher in recent.watchers:
                watcher.end()
