"""The embedded implementation of the port. It prepares writes by Kubernetes' rules, and answers when they are
durable."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint

from devlet.cluster.client import (
    DeleteOptions,
    ListOptions,
    ObjectList,
    Patch,
    WatchEvent,
    WatchOptions,
    WriteOptions,
)
from devlet.cluster.store import deletion, drafts, guards, lists, pods
from devlet.cluster.store.bootstrap import bootstrap
from devlet.cluster.store.collector import Collector
from devlet.cluster.store.expiry import Expiry
from devlet.cluster.store.incoming import accept
from devlet.cluster.store.ledger import Ledger, Pending, open_file
from devlet.cluster.store.records import Record, Table
from devlet.cluster.store.selection import Selection
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.staging import Staged, Staging, key_of, not_found
from devlet.cluster.store.watch import Batch, Watch, find_start
from devlet.errors import (
    BadRequest,
    DevletError,
    NotFound,
)
from devlet.kit.clock import Clock, SystemClock
from devlet.objects.conversion import convert
from devlet.objects.documents import Document, copy
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kind_rules import Rules
from devlet.objects.kinds import BUILT_IN, POD_DISRUPTION_BUDGETS, Catalogue, Kind, Resource
from devlet.objects.subdocuments import text

_AT_ONCE = 64  # objects of a collection that are deleted in one turn of the event loop


class Store:
    """The embedded cluster. Use `open_store`."""

    def __init__(self, ledger: Ledger, catalogue: Catalogue, clock: Clock, rules: Rules) -> None:
        self.catalogue = catalogue
        self._ledger = ledger
        self._clock = clock
        self._staging = Staging(ledger, clock, rules)
        self._threads = anyio.CapacityLimiter(1)

    @property
    def version(self) -> int:
        """The version of the newest committed change."""
        return self._ledger.version

    def problem(self) -> str | None:
        """Return why writes fail, or None if the last one was committed."""
        return self._ledger.problem

    @property
    def files(self) -> Collection[Path]:
        """The files that the store cannot write without."""
        return self._ledger.files

    def check_files(self) -> None:
        """Have `problem` say so if a file was removed. The store does so by itself at the next write."""
        self._ledger.check_files()

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        await checkpoint()  # a caller that reads in a loop must let other writes run
        record = self._ledger.table(resource.kind).get((namespace, name))
        if record is None:
            raise not_found(resource, name)
        return convert(record.document(), resource.api_version)

    def table(self, resource: Resource) -> Table:
        """Return the committed objects, for callers that do not await. They must not be changed."""
        return self._ledger.table(resource.kind)

    @property
    def unread_bytes(self) -> int:
        """Return how many bytes of changes are in memory because some watch has yet to see them."""
        return self._ledger.watchers.bytes

    def end_watches(self) -> None:
        """End every watch. Its reader can resume it later, or elsewhere."""
        self._ledger.watchers.end_all()

    def freeze(self) -> None:
        """Answer every write with Unavailable from now on. To see what a crash would leave behind, stop everything else
        after this call: nothing that is written meanwhile is kept."""
        self._ledger.freeze()

    def exists(self, resource: Resource, name: str, namespace: str = "") -> bool:
        """Return True if the object exists for the next write."""
        return self._ledger.newest(resource.kind, (namespace, name)) is not None

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        page = await self.page(resource, namespace, options)
        return ObjectList(page.documents(resource.api_version), str(page.version), page.continue_, page.remaining)

    async def page(self, resource: Resource, namespace: str, options: ListOptions) -> lists.Page:
        """List like `list`, but with the objects as they are stored."""
        selection = Selection(resource, namespace, options.label_selector, options.field_selector)
        return await lists.page(self._ledger, resource.kind, selection, options)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        async with self._watching(resource, namespace, options) as watch, aclosing(watch.events()) as events:
            yield events

    @asynccontextmanager
    async def watch_batches(
        self, resource: Resource, namespace: str, options: WatchOptions
    ) -> AsyncIterator[AsyncIterator[Batch]]:
        """Watch in batches of the events that are available at the same time, with the objects as they are stored. The
        caller may clear a batch that it has handled."""
        async with self._watching(resource, namespace, options) as watch, aclosing(watch.batches()) as batches:
            yield batches

    @asynccontextmanager
    async def _watching(self, resource: Resource, namespace: str, options: WatchOptions) -> AsyncIterator[Watch]:
        selection = Selection(resource, namespace, options.label_selector, options.field_selector)
        start = await find_start(self._ledger, options)
        watch = Watch(self._ledger, resource, selection, options, start)
        with watch.running():
            yield watch

    async def create(
        self,
        resource: Resource,
        document: Document,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        if subresource:
            try:
                return await self._create_subresource(resource, (namespace, name), subresource, document, options)
            except DevletError:
                await self._refused(resource.kind, (namespace, name))
                raise

        def step(staging: Staging, options: WriteOptions) -> Staged:
            return staging.create(resource, _accepted(resource, document, options), namespace, options)

        return await self._write(resource, (namespace, text(document, "metadata", "name")), options, step)

    async def update(
        self,
        resource: Resource,
        document: Document,
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        _check_subresource(resource, subresource)

        def step(staging: Staging, options: WriteOptions) -> Staged:
            new = _accepted(resource, document, options)
            if not new["metadata"].get("name"):
                raise BadRequest("name must be provided")
            if "managedFields" in document["metadata"]:  # an empty list removes the managers
                new["metadata"].setdefault("managedFields", [])
            return staging.replacement(resource, new, subresource, options)

        key = text(document, "metadata", "namespace"), text(document, "metadata", "name")
        return await self._write(resource, key, options, step)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str = "",
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        _check_subresource(resource, subresource)

        def step(staging: Staging, options: WriteOptions) -> Staged:
            return staging.patch(resource, (namespace, name), patch, subresource, options)

        return await self._write(resource, (namespace, name), options, step)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DeleteOptions()
    ) -> Document:
        try:
            old = self._staging.existing(resource, (namespace, name))
            document, pending = self._staging.delete(resource, old, options)
        except DevletError:
            await self._refused(resource.kind, (namespace, name))
            raise
        await self._settle(resource.kind, old.key, pending)
        # An object that waits for its deletion is returned, whatever its kind.
        if resource.kind.delete_returns_object or "deletionTimestamp" in document["metadata"]:
            return convert(document, resource.api_version)
        details = {"name": name, "group": resource.group, "kind": resource.plural, "uid": document["metadata"]["uid"]}
        return _success(details={k: v for k, v in details.items() if v})

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
        select: ListOptions = ListOptions(),
    ) -> ObjectList:
        selection = Selection(resource, namespace, select.label_selector, select.field_selector)
        page = await lists.page(self._ledger, resource.kind, selection, select)
        deleted, pendings = [], []
        for number, record in enumerate(page.records):
            if number % _AT_ONCE == 0:
                await checkpoint()
            old = self._ledger.newest(resource.kind, record.key)
            if old is not None and old.metadata.uid == record.metadata.uid:  # otherwise another writer was faster
                document, pending = self._staging.delete(resource, old, options)
                deleted.append(convert(document, resource.api_version))
                pendings.append((record.key, pending))
        for key, pending in pendings:
            await self._settle(resource.kind, key, pending)
        return ObjectList(deleted, str(page.version), page.continue_, page.remaining)

    async def _create_subresource(
        self, resource: Resource, key: ObjectKey, subresource: str, body: Document, options: WriteOptions
    ) -> Document:
        _check_subresource(resource, subresource)
        old = self._staging.existing(resource, key)
        document = self._staging.stored(resource, old)
        guards.check(options, body, document)
        if subresource == "binding":
            new = pods.bind(document, body, self._clock.now())
            if not options.dry_run:
                await self._ledger.write(resource.kind, key, new).durable()
        elif subresource == "eviction":
            await self._evict(resource, old, pods.eviction_options(document, body), options)
        else:
            raise BadRequest(f"{resource.plural}/{subresource} cannot be created here")
        return _success(code=201)

    async def _evict(self, resource: Resource, old: Record, delete: DeleteOptions, options: WriteOptions) -> None:
        delete = replace(delete, dry_run=delete.dry_run or options.dry_run)
        document = self._staging.stored(resource, old)
        outcome = deletion.decide(resource, document, delete, self._clock.now())
        table = self.table(POD_DISRUPTION_BUDGETS)
        budgets = (table.records[key] for key in table.keys(old.key[0]))
        pods.check_budgets(document, [self._staging.stored(POD_DISRUPTION_BUDGETS, each) for each in budgets])
        if delete.dry_run:
            return
        document = pods.mark_evicted(outcome.document or document, self._clock.now())
        await self._ledger.write(resource.kind, old.key, document, deleted=outcome.remove).durable()

    async def _write(self, resource: Resource, key: ObjectKey, options: WriteOptions, step: drafts.Step) -> Document:
        run = guards.runner(options)
        if run is None and self._is_large(resource.kind, key):  # for example a controller's write
            run = self._in_thread
        try:
            if run is None:
                staged = step(self._staging, options)
            else:
                staged = await drafts.stage(self._ledger, self._staging, resource, key[1], options, run, step)
        except DevletError:
            await self._refused(resource.kind, key)
            raise
        return await self._finish(resource, staged, options)

    def _is_large(self, kind: Kind, key: ObjectKey) -> bool:
        record = self._ledger.newest(kind, key)
        return record is not None and len(record.body) > self._ledger.settings.large_object_bytes

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    async def _finish(self, resource: Resource, staged: Staged, options: WriteOptions) -> Document:
        document, pending = staged
        if pending is not None:
            await pending.durable()
        elif not options.dry_run:
            await self._ledger.settled(resource.kind, key_of(document))
        return convert(document, resource.api_version)

    async def _refused(self, kind: Kind, key: ObjectKey) -> None:
        """Wait for the newest write before refusing one. A client that is refused and then reads must see the write
        that is the reason, and if that write fails, the error is that of the disk."""
        await checkpoint()
        await self._ledger.settled(kind, key)

    async def _settle(self, kind: Kind, key: ObjectKey, pending: Pending | None) -> None:
        """Wait until the answer is durable. A write that changed nothing waits for the previous write."""
        if pending is not None:
            await pending.durable()
        else:
            await self._ledger.settled(kind, key)


@asynccontextmanager
async def open_store(
    path: Path,
    settings: Settings = Settings(),
    clock: Clock = SystemClock(),
    *,
    kinds: Iterable[Kind] = BUILT_IN,
    rules: Rules = Rules(),
) -> AsyncIterator[Store]:
    """Open the cluster in the file `path`, or create it. Raise StateCorrupt for a file that is damaged or not a devlet
    database, and leave it unchanged. The caller ensures that only one process opens it."""
    file = await anyio.to_thread.run_sync(open_file, path, clock)
    try:
        ledger = await anyio.to_thread.run_sync(partial(Ledger, file, settings, clock))
        store = Store(ledger, Catalogue(kinds), clock, rules)
        with ledger.running():
            async with anyio.create_task_group() as tasks:
                if settings.collect_garbage:
                    collector = Collector(store, ledger)
                    tasks.start_soon(collector.run)
                tasks.start_soon(_compact_now_and_then, ledger, clock)
                tasks.start_soon(ledger.probe_while_failing)
                tasks.start_soon(Expiry(ledger, clock).run)
                await bootstrap(store)
                yield store
                tasks.cancel_scope.cancel()
    finally:
        file.close()


async def _compact_now_and_then(ledger: Ledger, clock: Clock) -> None:
    """Compact at the start and repeatedly: a store that never runs long would otherwise grow without end."""
    while True:
        ledger.watchers.trim()
        ledger.compact()
        await clock.sleep(ledger.settings.compact_every)


def _accepted(resource: Resource, document: Document, options: WriteOptions) -> Document:
    """Return the document in storage form. If the document may be needed again, the result shares nothing with it."""
    if options.shaped and guards.runner(options) is not None:
        document = copy(document)
    return accept(resource, document, options)


def _check_subresource(resource: Resource, subresource: str) -> None:
    if subresource and subresource not in resource.kind.subresources:
        raise NotFound("the server could not find the requested resource")


def _success(*, code: int = 0, details: Document | None = None) -> Document:
    status: Document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return status | ({"details": details} if details else {}) | ({"code": code} if code else {})
