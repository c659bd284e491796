"""A live copy of a cluster's objects of one kind, kept up to date by list and watch.

Control loops read from an `Informer` instead of asking the cluster repeatedly: objects by key and by index, and a
stream of changes. It lists once and watches from there. It lists again when the cluster no longer has its version;
listeners then get only the differences. Objects are shared: read them, but never change them.

One object must not stop the others. An object that cannot be decoded is left out, and a listener that fails is still
called for the next change. Both are reported to the quarantine.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from msgspec import Struct

from devlet.cluster.client import Cluster, EventType, ListOptions, WatchEvent, WatchOptions
from devlet.cluster.quarantine import Quarantine
from devlet.errors import DevletError, Expired
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock, SystemClock, wait
from devlet.kit.facts import facts
from devlet.objects.documents import Document
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import Resource

__all__ = ["Changed", "Indexer", "Informer"]

log = logging.getLogger(__name__)

T = TypeVar("T")
Indexer = Callable[[T], Iterable[str]]
_PAGE = 500
_SETTLE = 0.3  # seconds without an event after which a resumed watch has delivered all missed changes
_LIVED = 5.0  # seconds after which a watch counts as successful, even without an event


class Changed(Struct, Generic[T], frozen=True, gc=False):
    """A change of an object. `old` is None for a new object, `new` for a deleted one."""

    key: ObjectKey
    old: T | None
    new: T | None


class _Entry(Struct, Generic[T], frozen=True, gc=False):
    version: str
    object: T


class Informer(Generic[T]):
    """`decode` converts each version of a document once. `indexes` are functions that return the values under which
    `by_index` finds an object."""

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        decode: Callable[[Document], T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, Indexer[T]] | None = None,
        backoff: Backoff = Backoff(0.8, 10.0),  # client-go's 30 s would delay the recovery from an outage
        clock: Clock = SystemClock(),
        quarantine: Quarantine | None = None,
    ) -> None:
        self._quarantine = quarantine or Quarantine()
        self._cluster = cluster
        self._resource = resource
        self._decode = decode
        self._namespace = namespace
        self._labels = label_selector
        self._fields = field_selector
        self._indexers = dict(indexes or {})
        self._indexed: dict[str, dict[str, set[ObjectKey]]] = {name: {} for name in self._indexers}
        self._backoff = backoff
        self._clock = clock
        self._failures = 0  # consecutive attempts without success
        self._lived = False  # whether the present attempt was successful
        self._following = anyio.Event()  # set while there is a watch
        self._ended = clock.monotonic()  # when the last watch ended
        self._settles = 0.0  # when a resumed watch will have delivered all missed changes
        self._entries: dict[ObjectKey, _Entry[T]] = {}
        self._unreadable: dict[ObjectKey, str] = {}  # the version of each that could not be decoded
        self._readers: set[MemoryObjectSendStream[Changed[T]]] = set()
        self._listeners: list[Callable[[Changed[T]], None]] = []
        self.version = ""  # the version of the copy

    def get(self, name: str, namespace: str = "") -> T | None:
        entry = self._entries.get((namespace, name))
        return entry.object if entry else None

    def all(self) -> list[T]:
        return [entry.object for entry in self._entries.values()]

    def by_index(self, index: str, value: str) -> list[T]:
        return [self._entries[key].object for key in sorted(self._indexed[index].get(value, ()))]

    @property
    def is_following(self) -> bool:
        """Return True if the copy is up to date, as far as is known."""
        return self._following.is_set() and (not self._settles or self._clock.monotonic() >= self._settles)

    async def until_following(self, within: float) -> None:
        """Wait until the copy is up to date, but not longer than `within` seconds since it last was: it may never be
        again."""
        deadline = self._ended + within
        while not self.is_following and (left := deadline - self._clock.monotonic()) > 0:
            if self._following.is_set():
                await self._clock.sleep(min(left, self._settles - self._clock.monotonic()))
            else:
                await wait(self._following, self._clock, left)

    def on_change(self, listener: Callable[[Changed[T]], None]) -> None:
        """Call the listener for the present objects as if they were new, and then at once for each change. All
        listeners are called before any task sees the change. A listener must not wait. If it fails, the object is
        reported."""
        self._listeners.append(listener)
        for key, entry in list(self._entries.items()):
            self._call(listener, Changed(key, None, entry.object), entry.version)

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[MemoryObjectReceiveStream[Changed[T]]]:
        """Yield a stream of changes, which begins with the present objects as if they were new. No change is dropped,
        so the reader must keep reading."""
        send, receive = anyio.create_memory_object_stream[Changed[T]](float("inf"))
        for key, entry in self._entries.items():
            send.send_nowait(Changed(key, None, entry.object))
        self._readers.add(send)
        try:
            with receive:
                yield receive
        finally:
            self._readers.discard(send)
            send.close()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the copy up to date until cancelled. Ready when the copy is complete for the first time."""
        ready = False
        while True:
            problem: DevletError | None = None
            try:
                if not self.version:
                    await self._list()
                if not ready:
                    task_status.started()
                    ready = True
                await self._watch()
            except Expired:
                self.version = ""
            except DevletError as e:
                problem = e
            await self._rest(problem)

    async def _rest(self, problem: DevletError | None) -> None:
        """Wait before the next attempt. A watch may end or expire, but not several times in a row at once."""
        lived, self._lived = self._lived, False
        failures = 0 if lived else self._failures
        self._failures = failures + (problem is not None or not lived)
        if problem is None and failures == 0:
            return
        delay = self._backoff.delay(failures if problem else failures - 1, random.random)
        err = problem or "ended at once, again"
        log.warning("watch broken", extra=facts(resource=self._resource.name, err=err, delay=delay))
        await self._clock.sleep(delay)

    async def _list(self) -> None:
        """List all pages before any change, so that an incomplete list changes nothing."""
        found: dict[ObjectKey, Document] = {}
        options = ListOptions(self._labels, self._fields, limit=_PAGE)
        while True:
            page = await self._cluster.list(self._resource, self._namespace, options)
            found |= {_key(document): document for document in page.items}
            if not page.continue_:
                break
            options = ListOptions(self._labels, self._fields, limit=_PAGE, continue_=page.continue_)
        for key in (self._entries.keys() | self._unreadable.keys()) - found.keys():
            self._gone(key)
        for document in found.values():
            self._put(document)
        self.version = page.resource_version

    async def _watch(self) -> None:
        options = WatchOptions(self._labels, self._fields, resource_version=self.version, bookmarks=True)
        async with self._cluster.watch(self._resource, self._namespace, options) as events:
            began = self._clock.monotonic()
            self._settles = began + _SETTLE if self._failures else 0.0
            self._following.set()
            try:
                async for event in events:
                    self._lived = True
                    self._apply(event)
                    if self._settles:
                        self._settle()
            finally:
                self._following, self._ended = anyio.Event(), self._clock.monotonic()
                self._lived |= self._ended - began >= _LIVED

    def _settle(self) -> None:
        """Note when the missed changes have arrived: they come at once, so they are over after a moment without
        events."""
        now = self._clock.monotonic()
        self._settles = now + _SETTLE if now < self._settles else 0.0

    def _apply(self, event: WatchEvent) -> None:
        match event.type:
            case EventType.ADDED | EventType.MODIFIED:
                self._put(event.object)
            case EventType.DELETED:
                self._gone(_key(event.object))
        self.version = event.object["metadata"]["resourceVersion"]

    def _put(self, document: Document) -> None:
        key, version = _key(document), document["metadata"]["resourceVersion"]
        old = self._entries.get(key)
        if version in (old.version if old else "", self._unreadable.get(key)):
            return
        self._quarantine.remove(self._resource, key, version)
        self._unreadable.pop(key, None)
        try:
            new = _Entry(version, self._decode(document))
            after = self._index_values(new.object)
        except Exception as e:  # the other objects are still kept up to date
            self._unreadable[key] = version
            self._quarantine.add(self._resource, document, e)
            return self._remove(key)
        self._entries[key] = new
        self._reindex(key, old.object if old else None, after)
        self._publish(Changed(key, old.object if old else None, new.object), version)

    def _gone(self, key: ObjectKey) -> None:
        self._quarantine.remove(self._resource, key)
        self._unreadable.pop(key, None)
        self._remove(key)

    def _remove(self, key: ObjectKey) -> None:
        if (old := self._entries.pop(key, None)) is not None:
            self._reindex(key, old.object, {})
            self._publish(Changed(key, old.object, None), old.version)

    def _index_values(self, object: T) -> dict[str, set[str]]:
        return {name: set(indexer(object)) for name, indexer in self._indexers.items()}

    def _reindex(self, key: ObjectKey, old: T | None, values: Mapping[str, set[str]]) -> None:
        before = self._index_values(old) if old is not None else {}
        for name, index in self._indexed.items():
            was, now = before.get(name, set()), values.get(name, set())
            for value in was - now:
                index[value].discard(key)
                if not index[value]:
                    del index[value]
            for value in now - was:
                index.setdefault(value, set()).add(key)

    def _publish(self, change: Changed[T], version: str) -> None:
        for listener in self._listeners:
            self._call(listener, change, version)
        for reader in self._readers:
            reader.send_nowait(change)

    def _call(self, listener: Callable[[Changed[T]], None], change: Changed[T], version: str) -> None:
        try:
            listener(change)
        except Exception as e:  # one object must not end the control loops that share this copy
            namespace, name = change.key
            metadata = {"namespace": namespace, "name": name, "resourceVersion": version}
            handler = getattr(listener, "__qualname__", type(listener).__name__)
            self._quarantine.add(self._resource, {"metadata": metadata}, e, handler=handler)


def _key(document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
