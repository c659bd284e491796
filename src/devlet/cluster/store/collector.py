"""Garbage collection: delete an object when the last of its owners is gone.

Whenever an owner or a dependent changes, the objects concerned are checked again. `decide` returns what has to happen
to one object, from values alone; the collector does it.
"""

import logging
from dataclasses import dataclass
from typing import Protocol

import anyio

from devlet.cluster.client import Cluster, DeleteOptions, MergePatch, Preconditions, Propagation
from devlet.cluster.store.deletion import FOREGROUND, ORPHAN
from devlet.cluster.store.ledger import Ledger
from devlet.cluster.store.owners import Item
from devlet.cluster.store.records import Owner, Record
from devlet.cluster.store.strategy import strategy_of
from devlet.errors import Conflict, DevletError, NotFound, Unavailable
from devlet.kit.changes import Changes
from devlet.kit.facts import facts
from devlet.objects.kinds import Catalogue, Resource

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Delete:
    propagation: Propagation


@dataclass(frozen=True, slots=True)
class KeepOwners:
    """Keep only these owners in the object."""

    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class DropFinalizer:
    name: str


Step = Delete | KeepOwners | DropFinalizer


def decide(record: Record, owners: dict[str, Record | None], dependents: list[Record]) -> Step | None:
    """Decide what to do with an object. `owners` are those of known kinds, by UID, with None for absent ones.
    `dependents` are the objects that have this object as an owner."""
    metadata = record.metadata
    if metadata.deletion_timestamp is not None:
        if ORPHAN in metadata.finalizers and not dependents:
            return DropFinalizer(ORPHAN)
        blocking = [d for d in dependents if _blocks(d, metadata.uid)]
        if FOREGROUND in metadata.finalizers and not blocking:
            return DropFinalizer(FOREGROUND)
    known = [o for o in metadata.owner_references if o.uid in owners]
    orphaning = {o.uid for o in known if _has_finalizer(owners[o.uid], ORPHAN)}
    if orphaning:
        return KeepOwners(frozenset(o.uid for o in metadata.owner_references) - orphaning)
    if not metadata.owner_references or metadata.deletion_timestamp is not None:
        return None
    absent = {o.uid for o in known if owners[o.uid] is None}
    waiting = {o.uid for o in known if _has_finalizer(owners[o.uid], FOREGROUND)}
    solid = {o.uid for o in metadata.owner_references} - absent - waiting
    if solid:
        return KeepOwners(frozenset(solid)) if absent or waiting else None
    if waiting:
        # Dependents of this object may block as well, so they are deleted first, except in a cycle of owners.
        ring = any(_has_finalizer(dependent, FOREGROUND) for dependent in dependents)
        return Delete(Propagation.FOREGROUND if dependents and not ring else Propagation.BACKGROUND)
    return Delete(Propagation.BACKGROUND)


def _matters(old: Record | None, new: Record | None) -> bool:
    """Return True if `decide` could return something else after the change, for this object or a related one."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.owner_references != after.owner_references
        or before.finalizers != after.finalizers
        or before.deletion_timestamp != after.deletion_timestamp
    )


def _owners(record: Record | None) -> tuple[Owner, ...]:
    return record.metadata.owner_references if record else ()


def _has_finalizer(owner: Record | None, name: str) -> bool:
    return owner is not None and owner.metadata.deletion_timestamp is not None and name in owner.metadata.finalizers


def _blocks(dependent: Record, owner_uid: str) -> bool:
    return any(o.uid == owner_uid and o.block_owner_deletion for o in dependent.metadata.owner_references)


class _Objects(Cluster, Protocol):
    catalogue: Catalogue


class Collector:
    def __init__(self, store: _Objects, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self._todo: dict[Item, None] = {}  # in order of arrival, each once
        self._arrivals = Changes()
        for kind in store.catalogue:
            for key, record in ledger.table(kind).records.items():
                if record.metadata.owner_references or record.metadata.finalizers:
                    self._add((kind.key, key))
        ledger.owners.listen(self._changed)

    async def run(self) -> None:
        while True:
            await self._arrivals.until(lambda: self._todo)
            item = next(iter(self._todo))
            del self._todo[item]
            try:
                await self._collect(item)
            except DevletError as e:
                log.warning("object not collected", extra=facts(resource=item[0], name="/".join(item[1]), err=e))
                if isinstance(e, Unavailable):
                    self._add(item)
                    await anyio.sleep(e.retry_after)
                elif isinstance(e, Conflict):  # `_matters` may ignore the other write
                    self._add(item)
            except Exception as e:  # the other objects are still collected
                log.error(
                    "object not collected", exc_info=e, extra=facts(resource=item[0], name="/".join(item[1]), err=e)
                )

    def _add(self, item: Item) -> None:
        self._todo[item] = None
        self._arrivals.notify()

    def _changed(self, kind: str, old: Record | None, new: Record | None) -> None:
        record = new or old
        if record is None or not _matters(old, new):
            return
        if new is not None:
            self._add((kind, record.key))
        for item in self._ledger.owners.dependents(record.metadata.uid):
            self._add(item)
        # Check an owner that waits for the deletion of its dependents.
        for owner in {*_owners(old), *_owners(new)}:
            resource, found = self._find(owner, record) or (None, None)
            if resource is not None and found is not None and found.metadata.deletion_timestamp is not None:
                self._add((resource.kind.key, found.key))

    async def _collect(self, item: Item) -> None:
        kind = self._store.catalogue.stored(item[0])
        if kind is None or not strategy_of(kind).is_collected:
            return
        await self._ledger.settled(kind, item[1])
        if (record := self._ledger.table(kind).get(item[1])) is None:
            return
        owners = {}
        for owner in record.metadata.owner_references:
            if (found := self._find(owner, record)) is not None:
                owners[owner.uid] = found[1]
        step = decide(record, owners, self._dependents(record))
        if step is not None:
            await self._do(Resource(kind, kind.storage_version), record, step)

    def _find(self, owner: Owner, dependent: Record) -> tuple[Resource, Record | None] | None:
        """Return the owner, with None in place of its record if it is absent, or None if its kind is not known."""
        try:
            resource = self._store.catalogue.of_kind(owner.api_version, owner.kind)
        except NotFound:
            return None
        namespace = dependent.key[0] if resource.namespaced else ""
        if resource.namespaced and not namespace:
            return None  # a cluster-scoped object cannot have an owner in a namespace: leave it alone
        record = self._ledger.table(resource.kind).get((namespace, owner.name))
        return resource, record if record is not None and record.metadata.uid == owner.uid else None

    def _dependents(self, record: Record) -> list[Record]:
        found = []
        for kind_key, key in self._ledger.owners.dependents(record.metadata.uid):
            kind = self._store.catalogue.stored(kind_key)
            dependent = self._ledger.table(kind).get(key) if kind else None
            if dependent is not None:
                found.append(dependent)
        return found

    async def _do(self, resource: Resource, record: Record, step: Step) -> None:
        namespace, name = record.key
        match step:
            case Delete(propagation):
                preconditions = Preconditions(record.metadata.uid, str(record.version))
                await self._store.delete(
                    resource, name, namespace, DeleteOptions(propagation=propagation, preconditions=preconditions)
                )
                log.info("object collected", extra=facts(resource=resource.name, name=name, namespace=namespace))
            case KeepOwners(uids):
                references = [r for r in record.document()["metadata"]["ownerReferences"] if r["uid"] in uids]
                await self._patch(resource, record, {"ownerReferences": references or None})
            case DropFinalizer(finalizer):
                left = [f for f in record.metadata.finalizers if f != finalizer]
                await self._patch(resource, record, {"finalizers": left or None})

    async def _patch(self, resource: Resource, record: Record, metadata: dict[str, object]) -> None:
        namespace, name = record.key
        patch = MergePatch({"metadata": {"resourceVersion": str(record.version), **metadata}})
        await self._store.patch(resource, name, patch, namespace)
