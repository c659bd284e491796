"""The embedded implementation of the port: Kubernetes' rules over the ledger.

Everything between reading the newest state and handing the write to the ledger happens without an await: nobody can
come in between, so no write needs a retry.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint

from devlet.cluster.client import (
    ApplyPatch,
    DeleteOptions,
    JsonPatch,
    ListOptions,
    MergePatch,
    ObjectList,
    Patch,
    StrategicMergePatch,
    WatchEvent,
    WatchOptions,
    WriteOptions,
)
from devlet.cluster.store import deletion, guards, lists, pods, strategy
from devlet.cluster.store.admission import Admission
from devlet.cluster.store.bootstrap import bootstrap
from devlet.cluster.store.collector import Collector
from devlet.cluster.store.incoming import accept
from devlet.cluster.store.ledger import Ledger, Pending, open_file
from devlet.cluster.store.randomness import Randomness
from devlet.cluster.store.records import Documents, Key, Record, Table
from devlet.cluster.store.selection import Selection
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.watch import Frame, Watch, find_start
from devlet.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    DevletError,
    InvalidObject,
    NotFound,
    UnsupportedPatch,
)
from devlet.kit.clock import Clock, SystemClock
from devlet.objects.conversion import convert
from devlet.objects.documents import Document
from devlet.objects.kinds import BUILT_IN, POD_DISRUPTION_BUDGETS, Catalogue, Kind, Resource
from devlet.objects.names import generated_name
from devlet.objects.patches import apply as server_side_apply
from devlet.objects.patches import json_patch, managed_fields, merge_patch, strategic_merge
from devlet.objects.patches.limits import PatchFailed
from devlet.objects.schema import message_of
from devlet.objects.timestamps import format_time
from devlet.objects.validation import Rules

_GENERATED_NAME_TRIES = 8
_DEFAULT_MANAGER = "devlet"


class Store:
    """Use `open_store`."""

    def __init__(self, ledger: Ledger, catalogue: Catalogue, clock: Clock, rules: Rules) -> None:
        self.catalogue = catalogue
        self._ledger = ledger
        self._clock = clock
        self._admission = Admission(ledger, rules)
        self._randomness = Randomness()

    @property
    def version(self) -> int:
        """The version of the newest committed change."""
        return self._ledger.version

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        await checkpoint()  # or else whoever reads in a loop waits for a write that never gets its turn
        record = self._ledger.table(resource.kind).get((namespace, name))
        if record is None:
            raise _not_found(resource, name)
        return convert(record.document(), resource.api_version)

    def table(self, resource: Resource) -> Table:
        """The committed objects, for those who decide without waiting. Not to be changed."""
        return self._ledger.table(resource.kind)

    def end_watches(self) -> None:
        """Every watch ends where it is; its reader resumes elsewhere, or later."""
        self._ledger.watchers.end_all()

    def freeze(self) -> None:
        """From now on every write is answered with Unavailable. Whoever wants to see what a crash leaves behind ends
        the rest after this: nothing that happens on the way is kept."""
        self._ledger.freeze()

    def exists(self, resource: Resource, name: str, namespace: str = "") -> bool:
        """As the next write will find it."""
        return self._ledger.newest(resource.kind, (namespace, name)) is not None

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        page = await self.page(resource, namespace, options)
        items = Documents(page.records, resource.api_version)
        return ObjectList(items, str(page.version), page.continue_, page.remaining)

    async def page(self, resource: Resource, namespace: str, options: ListOptions) -> lists.Page:
        """As `list`, with the objects as they are stored."""
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
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        """As `watch`, with the objects as they are stored, and with events together that are there together."""
        async with self._watching(resource, namespace, options) as watch, aclosing(watch.batches()) as batches:
            yield batches

    @asynccontextmanager
    async def _watching(self, resource: Resource, namespace: str, options: WatchOptions) -> AsyncIterator[Watch]:
        selection = Selection(resource, namespace, options.label_selector, options.field_selector)
        start = await find_start(self._ledger, options)
        watch = Watch(self._ledger, resource, selection, options, start)
        with self._ledger.watchers.added(resource.kind.key, watch.watcher):
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
        new = accept(resource, document, options)
        try:
            staged = self._stage_create(resource, new, namespace, options)
        except DevletError:
            await self._refused(resource.kind, (namespace, new["metadata"].get("name", "")))
            raise
        return await self._finish(resource, staged, options)

    async def update(
        self,
        resource: Resource,
        document: Document,
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        _check_subresource(resource, subresource)
        new = accept(resource, document, options)
        if not new["metadata"].get("name"):
            raise BadRequest("name must be provided")
        if "managedFields" in document["metadata"]:  # an empty list means something here: forget who manages what
            new["metadata"].setdefault("managedFields", [])
        try:
            staged = self._stage_replacement(resource, new, subresource, options)
        except DevletError:
            await self._refused(resource.kind, _key(new))
            raise
        return await self._finish(resource, staged, options)

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
        try:
            staged = self._stage_patch(resource, (namespace, name), patch, subresource, options)
        except DevletError:
            await self._refused(resource.kind, (namespace, name))
            raise
        return await self._finish(resource, staged, options)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DeleteOptions()
    ) -> Document:
        try:
            old = self._existing(resource, (namespace, name))
            document, pending = self._stage_delete(resource, old, options)
        except DevletError:
            await self._refused(resource.kind, (namespace, name))
            raise
        await self._settle(resource.kind, old.key, pending)
        # An object that has to wait is shown as it is now, whatever the kind.
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
        for record in page.records:
            old = self._ledger.newest(resource.kind, record.key)
            if old is not None:  # else somebody was faster
                document, pending = self._stage_delete(resource, old, options)
                deleted.append(convert(document, resource.api_version))
                pendings.append((record.key, pending))
        for key, pending in pendings:
            await self._settle(resource.kind, key, pending)
        return ObjectList(deleted, str(page.version), page.continue_, page.remaining)

    # Staging: from the newest state to a write on its way. No awaits.

    def _stage_create(
        self, resource: Resource, new: Document, namespace: str, options: WriteOptions, *, applied: bool = False
    ) -> tuple[Document, Pending | None]:
        now = self._clock.now()
        sent = dict(new.get("spec") or {}) if resource.kind.kind == "Pod" else {}
        _place(resource, new, namespace)
        self._generate_name(resource, new)
        strategy.prepare_create(resource.kind, new, uid=self._randomness.uid(), now=now)
        self._admission.admit_create(resource, new, options)
        key = _key(new)
        if self._ledger.newest(resource.kind, key) is not None:
            raise AlreadyExists(f'{resource.name} "{key[1]}" already exists', resource=resource.name, name=key[1])
        guards.check(options, new, None)
        if not applied:
            new["metadata"]["managedFields"] = managed_fields.updated(
                None,
                strategy.as_managed(new, sent),
                _manager(options),
                resource.api_version,
                "",
                format_time(now),
            )
        new = strategy.ordered(new)
        if options.dry_run:
            return _unversioned(new), None
        return new, self._ledger.write(resource.kind, key, new)

    def _stage_replacement(
        self, resource: Resource, new: Document, subresource: str, options: WriteOptions
    ) -> tuple[Document, Pending | None]:
        key = _key(new)
        old = self._ledger.newest(resource.kind, key)
        if old is None and resource.kind.update_creates and not subresource:
            new["metadata"].pop("resourceVersion", None)
            return self._stage_create(resource, new, key[0], options)
        old = self._existing(resource, key)
        _check_version(resource, new, old)
        return self._stage_update(resource, new, old, subresource, options)

    def _stage_patch(
        self, resource: Resource, key: Key, patch: Patch, subresource: str, options: WriteOptions
    ) -> tuple[Document, Pending | None]:
        if isinstance(patch, ApplyPatch):
            old = self._ledger.newest(resource.kind, key)
            return self._stage_apply(resource, key, patch, old, subresource, options)
        old = self._existing(resource, key)
        live = convert(old.document(), resource.api_version)
        new = accept(resource, _patched(resource, live, patch), options, patched=True, live=live)
        _check_address(new["metadata"], key)
        if (wanted := new["metadata"].get("resourceVersion")) and wanted != str(old.version):
            raise _modified(resource, key[1])
        return self._stage_update(resource, new, old, subresource, options, live=live)

    def _existing(self, resource: Resource, key: Key) -> Record:
        if (record := self._ledger.newest(resource.kind, key)) is None:
            raise _not_found(resource, key[1])
        return record

    def _generate_name(self, resource: Resource, new: Document) -> None:
        """A name that is free, if the client left that to us."""
        metadata = new["metadata"]
        if metadata.get("name") or not metadata.get("generateName"):
            return
        for _ in range(_GENERATED_NAME_TRIES):
            metadata["name"] = generated_name(metadata["generateName"], self._randomness.suffix())
            if self._ledger.newest(resource.kind, _key(new)) is None:
                return

    def _stage_update(
        self,
        resource: Resource,
        new: Document,
        old_record: Record,
        subresource: str,
        options: WriteOptions,
        *,
        live: Document | None = None,
        applied: bool = False,
    ) -> tuple[Document, Pending | None]:
        now = self._clock.now()
        old = old_record.document()
        new["metadata"].pop("resourceVersion", None)
        strategy.prepare_update(resource.kind, new, old, subresource=subresource, now=now, live=live)
        self._admission.admit_update(resource, new, old, subresource, options)
        guards.check(options, new, old)
        if not applied:
            new["metadata"]["managedFields"] = managed_fields.updated(
                old, new, _manager(options), resource.api_version, subresource, format_time(now)
            )
        new = strategy.ordered(new)
        unchanged = {**new, "metadata": {**new["metadata"], "resourceVersion": str(old_record.version)}}
        if unchanged == old:
            return old, None
        if options.dry_run:
            return unchanged, None
        deleted = strategy.is_finished(new)
        return new, self._ledger.write(resource.kind, old_record.key, new, deleted=deleted)

    def _stage_apply(
        self,
        resource: Resource,
        key: Key,
        patch: ApplyPatch,
        old: Record | None,
        subresource: str,
        options: WriteOptions,
    ) -> tuple[Document, Pending | None]:
        if not options.field_manager:
            cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
            raise InvalidObject("PatchOptions.meta.k8s.io", "", [cause])
        if old is None and subresource:
            raise _not_found(resource, key[1])
        config = _addressed(resource, patch.document, key)
        live = convert(old.document(), resource.api_version) if old else None
        applied = server_side_apply.apply(
            live,
            config,
            manager=options.field_manager,
            force=patch.force,
            api_version=resource.api_version,
            subresource=subresource,
            now=format_time(self._clock.now()),
            reset=strategy.reset_fields(resource.kind, subresource),
        )
        if live is not None and applied.changed:  # as if they had been there: we made them, so they are in shape
            live["metadata"]["managedFields"] = applied.document["metadata"].get("managedFields")
        new = accept(resource, applied.document, options, patched=True, live=live)
        if old is None:
            new["metadata"].pop("resourceVersion", None)
            return self._stage_create(resource, new, key[0], options, applied=True)
        wanted = config["metadata"].get("resourceVersion")
        if wanted and wanted != str(old.version):
            raise _modified(resource, key[1])
        return self._stage_update(resource, new, old, subresource, options, live=live, applied=True)

    def _stage_delete(self, resource: Resource, old: Record, options: DeleteOptions) -> tuple[Document, Pending | None]:
        document = old.document()
        guards.check(options, None, document)
        outcome = deletion.decide(resource, document, options, self._clock.now())
        if options.dry_run or (not outcome.remove and outcome.document is None):
            return outcome.document or document, None
        new = outcome.document or document
        return new, self._ledger.write(resource.kind, old.key, new, deleted=outcome.remove)

    async def _create_subresource(
        self, resource: Resource, key: Key, subresource: str, body: Document, options: WriteOptions
    ) -> Document:
        _check_subresource(resource, subresource)
        old = self._existing(resource, key)
        document = old.document()
        guards.check(options, body, document)
        if subresource == "binding":
            new = pods.bind(document, body, self._clock.now())
            if not options.dry_run:
                await self._ledger.write(resource.kind, key, new).durable()
        elif subresource == "eviction":
            await self._evict(resource, old, pods.eviction_options(body), options)
        else:
            raise BadRequest(f"{resource.plural}/{subresource} cannot be created here")
        return _success(code=201)

    async def _evict(self, resource: Resource, old: Record, delete: DeleteOptions, options: WriteOptions) -> None:
        delete = replace(delete, dry_run=delete.dry_run or options.dry_run)
        outcome = deletion.decide(resource, old.document(), delete, self._clock.now())
        budgets = self.table(POD_DISRUPTION_BUDGETS)
        pods.check_budgets(old.document(), [budgets.records[key].document() for key in budgets.keys(old.key[0])])
        if delete.dry_run:
            return
        document = pods.mark_evicted(outcome.document or old.document(), self._clock.now())
        await self._ledger.write(resource.kind, old.key, document, deleted=outcome.remove).durable()

    async def _finish(
        self, resource: Resource, staged: tuple[Document, Pending | None], options: WriteOptions
    ) -> Document:
        document, pending = staged
        if pending is not None:
            await pending.durable()
        elif not options.dry_run:
            await self._ledger.settled(resource.kind, _key(document))
        return convert(document, resource.api_version)

    async def _refused(self, kind: Kind, key: Key) -> None:
        """A refusal may rest on a write that is still on its way. Whoever is refused and reads again must find that
        write; and if it fails, it was the disk that refused."""
        await checkpoint()
        await self._ledger.settled(kind, key)

    async def _settle(self, kind: Kind, key: Key, pending: Pending | None) -> None:
        """Until what we are about to answer is durable; a write that changed nothing waits for the one before it."""
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
    """The cluster in the file `path`, which is made if there is none. Raises StateCorrupt for a file that is damaged
    or not ours, and leaves it as it is. One process at a time: the caller sees to that."""
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
                await bootstrap(store)
                yield store
                tasks.cancel_scope.cancel()
    finally:
        file.close()


async def _compact_now_and_then(ledger: Ledger, clock: Clock) -> None:
    """At the start too: a store that never lives long would grow without end."""
    while True:
        ledger.compact()
        await clock.sleep(ledger.settings.compact_every)


def _patched(resource: Resource, live: Document, patch: JsonPatch | MergePatch | StrategicMergePatch) -> Document:
    try:
        match patch:
            case JsonPatch(operations):
                return json_patch.apply(live, operations)
            case MergePatch(document):
                return merge_patch.apply(live, document)
            case StrategicMergePatch(document):
                message = message_of(resource.api_version, resource.kind.kind)
                if message is None:
                    raise UnsupportedPatch(f"{resource.name}: strategic merge patches exist for built-in kinds only")
                return strategic_merge.apply(live, document, message)
    except PatchFailed as e:
        refused = InvalidObject("", "", [])  # about the request: clients are told of no object
        refused.args = (f"the server rejected our request due to an error in our request: {e}",)
        raise refused from e


def _addressed(resource: Resource, document: Document, key: Key) -> Document:
    """An apply configuration that says which object it is for, as the request does."""
    if not document.get("apiVersion") or not document.get("kind"):
        raise BadRequest("invalid object type: an apply patch needs apiVersion and kind")
    namespace, name = key
    metadata = dict(document.get("metadata") or {})
    if not metadata.get("name"):
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    _check_address(metadata, key)
    if namespace:
        metadata["namespace"] = namespace
    return {**document, "metadata": metadata}


def _check_address(metadata: Document, key: Key) -> None:
    """A body must be about the object that was addressed."""
    namespace, name = key
    if metadata.get("name") != name:
        said = metadata.get("name")
        raise BadRequest(f"the name of the object ({said}) does not match the name on the URL ({name})")
    if namespace and metadata.get("namespace") not in (None, "", namespace):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def _place(resource: Resource, new: Document, namespace: str) -> None:
    metadata = new["metadata"]
    if not resource.namespaced:
        namespace = ""
        metadata.pop("namespace", None)
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        metadata["namespace"] = namespace
    elif resource.namespaced:
        raise BadRequest("an empty namespace may not be set during creation")


def _check_subresource(resource: Resource, subresource: str) -> None:
    if subresource and subresource not in resource.kind.subresources:
        raise NotFound("the server could not find the requested resource")


def _check_version(resource: Resource, new: Document, old: Record) -> None:
    metadata = new["metadata"]
    wanted = metadata.get("resourceVersion")
    if not wanted and resource.kind.update_needs_version:
        text = "Invalid value: 0: must be specified for an update"
        cause = Cause("FieldValueInvalid", text, "metadata.resourceVersion")
        raise InvalidObject(resource.kind_name, metadata["name"], [cause])
    if wanted and wanted != str(old.version):
        raise _modified(resource, metadata["name"])
    if metadata.get("uid") and metadata["uid"] != old.metadata.uid:
        raise Conflict(
            f'Operation cannot be fulfilled on {resource.name} "{metadata["name"]}": Precondition failed: UID in'
            f" precondition: {metadata['uid']}, UID in object meta: {old.metadata.uid}",
            resource=resource.name,
            name=metadata["name"],
        )


def _key(document: Document) -> Key:
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _unversioned(document: Document) -> Document:
    """As a dry run shows it: it was never written, so it has no version."""
    return {**document, "metadata": {k: v for k, v in document["metadata"].items() if k != "resourceVersion"}}


def _manager(options: WriteOptions) -> str:
    return options.field_manager or _DEFAULT_MANAGER


def _not_found(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource.name} "{name}" not found', resource=resource.name, name=name)


def _modified(resource: Resource, name: str) -> Conflict:
    message = (
        f'Operation cannot be fulfilled on {resource.name} "{name}": the object has been modified;'
        " please apply your changes to the latest version and try again"
    )
    return Conflict(message, resource=resource.name, name=name)


def _success(*, code: int = 0, details: Document | None = None) -> Document:
    status: Document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return status | ({"details": details} if details else {}) | ({"code": code} if code else {})
