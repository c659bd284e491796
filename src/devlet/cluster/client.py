"""The port: a cluster's objects as devlet reads and writes them.

`cluster.store` implements it on this host, `cluster.remote` in front of a Kubernetes API server; `node` and
`control` know only this page. Objects are documents (`objects.documents`) in the API version of the
`Resource` they are asked for. Errors are those of `devlet.errors`; each method's "no" is one of them:

get         NotFound
list        BadRequest (selector, token), InvalidObject (options), Expired (version or token too old)
watch       as list; Expired may also come out of the iterator: list again
create      InvalidObject, AlreadyExists, Forbidden, NotFound (the namespace)
update      InvalidObject, NotFound, Conflict
patch       InvalidObject, NotFound, Conflict, UnsupportedPatch, BadRequest
delete      NotFound, Conflict (preconditions), Forbidden
any         Unavailable (retry later)
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from devlet.objects.documents import Document
from devlet.objects.kinds import Resource

__all__ = [
    "ApplyPatch",
    "Cluster",
    "DeleteOptions",
    "EventType",
    "FieldValidation",
    "JsonPatch",
    "ListOptions",
    "MergePatch",
    "ObjectList",
    "Patch",
    "Preconditions",
    "Propagation",
    "StrategicMergePatch",
    "VersionMatch",
    "WatchEvent",
    "WatchOptions",
    "WriteOptions",
]


class FieldValidation(StrEnum):
    """How to treat fields that the schema does not have."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class VersionMatch(StrEnum):
    ANY = ""
    NOT_OLDER_THAN = "NotOlderThan"
    EXACT = "Exact"


class Propagation(StrEnum):
    """How to treat the objects that a deleted object owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class ListOptions:
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0  # 0: no limit
    continue_: str = ""  # from the previous page
    resource_version: str = ""
    version_match: VersionMatch = VersionMatch.ANY


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """`resource_version` unset or "0": the present objects first, as ADDED; N: all changes after N.

    `send_initial_events` asks for the present objects followed by a BOOKMARK with the annotation
    `k8s.io/initial-events-end` (true), or for none (false). `bookmarks` allows BOOKMARK events."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    version_match: VersionMatch = VersionMatch.ANY
    send_initial_events: bool | None = None
    bookmarks: bool = False
    timeout: float | None = None  # seconds, then the stream ends cleanly


@dataclass(frozen=True, slots=True)
class WriteOptions:
    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = FieldValidation.IGNORE
    warn: Callable[[str], None] | None = None  # called with warnings for the client
    shaped: bool = False  # devlet made the document: all fields are known and have the right types


@dataclass(frozen=True, slots=True)
class Preconditions:
    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_period: int | None = None  # seconds; None: the object's own
    propagation: Propagation | None = None
    preconditions: Preconditions = field(default=Preconditions())
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page. Items are complete documents, in the order of namespace and name; they may be decoded only when
    they are read, so read each once."""

    items: Sequence[Document]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None


class WatchEvent(Struct, frozen=True, gc=False):
    """An event of a watch. `object` is shared by all watchers: read it, but never change it."""

    type: EventType
    object: Document


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902."""

    operations: list[Any]


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7386."""

    document: Document


@dataclass(frozen=True, slots=True)
class StrategicMergePatch:
    """Kubernetes' merge patch, which merges certain lists by key."""

    document: Document


@dataclass(frozen=True, slots=True)
class ApplyPatch:
    """Server-side apply. `document` has all fields that the manager wants to own. Creates the object if it does not
    exist."""

    document: Document
    force: bool = False  # take fields from other managers instead of reporting a conflict


Patch = JsonPatch | MergePatch | StrategicMergePatch | ApplyPatch


class Cluster(Protocol):
    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document: ...

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        """Return all objects, or those of one namespace, from one consistent state."""
        ...

    def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Watch changes in order, without gaps or repetitions. The iterator ends when the stream does (time-out, or a
        reader that was too slow): watch again from the last version seen."""
        ...

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
        """Create an object. With `subresource` (binding, eviction, token), `name` is the name of the main object."""
        ...

    async def update(
        self,
        resource: Resource,
        document: Document,
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        """Replace the object that the document's metadata names. A resourceVersion in it must be the current one."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str = "",
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document: ...

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DeleteOptions()
    ) -> Document:
        """Delete an object. Return the object as it is now, or a Status, depending on the kind."""
        ...

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
        select: ListOptions = ListOptions(),
    ) -> ObjectList:
        """Delete each object that matches, and return them."""
        ...
