"""What the embedded cluster holds in memory: the committed objects of each kind and an index of their history.

Bodies are the JSON bytes that are on disk; decoding 5,000 slices of 128 devices at once would cost gigabytes. What
selection and clean-up need of an object (`Head`) is decoded on its own.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol, overload

import msgspec
from msgspec import Struct, field

from devlet.objects.conversion import convert
from devlet.objects.documents import Document, read_float
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import Kind


class Owner(Struct, frozen=True, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Metadata(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[Owner, ...] = ()
    deletion_timestamp: str | None = None


# The values that field selectors may ask for, of all kinds together; everything else is skipped while decoding.
class _Spec(Struct, rename="camel", omit_defaults=True):
    node_name: Any = None
    driver: Any = None
    restart_policy: Any = None
    scheduler_name: Any = None
    service_account_name: Any = None
    host_network: Any = None
    unschedulable: Any = None
    cluster_ip: Any = field(default=None, name="clusterIP")
    type: Any = None


class _Status(Struct, rename="camel", omit_defaults=True):
    phase: Any = None
    pod_ip: Any = field(default=None, name="podIP")
    pod_ips: Any = field(default=None, name="podIPs")
    nominated_node_name: Any = None


class Head(Struct, rename="camel", omit_defaults=True):
    metadata: Metadata = field(default_factory=Metadata)
    spec: _Spec | None = None
    status: _Status | None = None
    type: Any = None
    reason: Any = None
    source: Any = None
    reporting_component: Any = None
    involved_object: Any = None


class _MetadataOnly(Struct):
    metadata: Metadata = field(default_factory=Metadata)


_head = msgspec.json.Decoder(Head)
_metadata_only = msgspec.json.Decoder(_MetadataOnly)
_document = msgspec.json.Decoder(dict[str, Any], float_hook=read_float)


class Record:
    """One committed version of one object. `at` is when it was committed, by the ledger's clock.

    A record that this process wrote is `checked`: its values have the right types."""

    __slots__ = ("__dict__", "at", "body", "key", "version")
    checked = False

    def __init__(self, key: ObjectKey, version: int, body: bytes) -> None:
        self.key = key
        self.version = version
        self.body = body
        self.at = 0

    @classmethod
    def of(cls, key: ObjectKey, version: int, body: bytes, document: Document) -> "Record":
        """`body` is the document, encoded: its metadata need not be decoded again."""
        record = cls(key, version, body)
        record.metadata = msgspec.convert(document["metadata"], Metadata)
        record.checked = True
        return record

    @cached_property
    def head(self) -> Head:
        try:
            return _head.decode(self.body)
        except msgspec.ValidationError:  # for example a custom resource whose spec is not an object
            return Head(self._metadata())

    def _metadata(self) -> Metadata:
        """Return the metadata without values of the wrong type."""
        try:
            return _metadata_only.decode(self.body).metadata
        except msgspec.ValidationError:
            metadata = self.document()["metadata"]
            if not isinstance(metadata, dict):
                raise
        found = Metadata()
        for name, key in zip(Metadata.__struct_fields__, Metadata.__struct_encode_fields__, strict=True):
            with suppress(msgspec.ValidationError):
                setattr(
                    found,
                    name,
                    getattr(msgspec.convert({k: v for k, v in metadata.items() if k == key}, Metadata), name),
                )
        return found

    @cached_property
    def selectable(self) -> Document:
        """The part of the document that field selectors look at."""
        selectable: Document = msgspec.to_builtins(self.head)
        return selectable

    @cached_property
    def metadata(self) -> Metadata:
        return self.head.metadata

    def document(self) -> Document:
        """A fresh copy that the caller may change."""
        return _document.decode(self.body)


class Documents(Sequence[Document]):
    """Records as documents of one API version, decoded as they are read: thousands of large ones fit into memory."""

    def __init__(self, records: list[Record], api_version: str) -> None:
        self._records = records
        self._api_version = api_version

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> "Documents": ...
    def __getitem__(self, index: int | slice) -> "Document | Documents":
        if isinstance(index, slice):
            return Documents(self._records[index], self._api_version)
        return convert(self._records[index].document(), self._api_version)


class Change(Struct, frozen=True, gc=False):
    """An entry of the history: `version` replaced `previous` (0: there was none) under `key`."""

    version: int
    at: int
    key: ObjectKey
    previous: int
    deleted: bool
    size: int  # bytes that it superseded
    length: int = 0  # bytes of the new state


class Table:
    """The committed objects of one kind, by key and in key order, and the changes since the last compaction."""

    def __init__(self) -> None:
        self.records: dict[ObjectKey, Record] = {}  # in the order in which they were last written
        self._keys: list[ObjectKey] = []
        self._changes: list[Change] = []
        self.version = 0  # of the last change

    def get(self, key: ObjectKey) -> Record | None:
        return self.records.get(key)

    def put(self, record: Record, change: Change) -> Record | None:
        """Make `record` the current one; the one it replaces is returned."""
        old = self.records.pop(record.key, None)
        if old is None:
            insort(self._keys, record.key)
        self.records[record.key] = record
        self._changes.append(change)
        self.version = change.version
        return old

    def remove(self, change: Change) -> Record | None:
        old = self.records.pop(change.key, None)
        if old is not None:
            del self._keys[bisect_left(self._keys, change.key)]
        self._changes.append(change)
        self.version = change.version
        return old

    def keys(self, namespace: str = "", after: ObjectKey | None = None) -> Iterator[ObjectKey]:
        """Keys in order: all or those of a namespace, from the one after `after` on."""
        start = 0 if after is None else bisect_right(self._keys, after)
        if namespace:
            start = max(start, bisect_left(self._keys, (namespace, "")))
        for i in range(start, len(self._keys)):
            key = self._keys[i]
            if namespace and key[0] != namespace:
                return
            yield key

    def changes(self, after: int, limit: int | None = None) -> list[Change]:
        """Return the changes with a version above `after`, in order, and at most `limit` of them."""
        start = bisect_right(self._changes, after, key=lambda change: change.version)
        return self._changes[start : None if limit is None else start + limit]

    def versions_at(self, version: int) -> dict[ObjectKey, int]:
        """For the keys that changed since `version`: which version was current then (0: none)."""
        return {change.key: change.previous for change in reversed(self.changes(version))}

    def forget(self, to: int) -> list[Change]:
        """Drop the history up to and including `to`; what was dropped is returned."""
        cut = bisect_right(self._changes, to, key=lambda change: change.version)
        gone, self._changes = self._changes[:cut], self._changes[cut:]
        return gone


class Newest(Protocol):
    """The part of the ledger that reads an object as the latest write left it, committed or not."""

    def newest(self, kind: Kind, key: ObjectKey) -> Record | None: ...
