"""What an HTTP API needs from a store, in addition to the port: objects as they are stored, and guarded writes.

`cluster.store` implements it. An API that sends the stored bytes as they are neither decodes nor copies an object that
it only passes on; a guard lets it refuse a write after seeing the object as it would be stored.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from devlet.cluster.client import Cluster, DeleteOptions, EventType, ListOptions, WatchOptions, WriteOptions
from devlet.objects.documents import Document
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import Catalogue, Resource

__all__ = [
    "Batch",
    "Guard",
    "GuardedDelete",
    "GuardedWrite",
    "Run",
    "ServedStore",
    "StoredEvent",
    "StoredMetadata",
    "StoredObject",
    "StoredPage",
    "StoredTable",
    "allow",
]

# Called with the new object (None: it is deleted) and the stored one (None: there is none), in the storage version.
# Raises an error of `devlet.errors` to refuse the write.
Guard = Callable[[Document | None, Document | None], None]

# Runs a computation beside the event loop and returns its result.
Run = Callable[[Callable[[], Any]], Awaitable[Any]]


def allow(new: Document | None, old: Document | None) -> None:
    """Let every write pass."""


@dataclass(frozen=True, slots=True)
class GuardedWrite(WriteOptions):
    """`run` prepares objects that take long beside the event loop; None prepares them in the event loop."""

    guard: Guard = allow
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class GuardedDelete(DeleteOptions):
    guard: Guard = allow


class StoredMetadata(Protocol):
    @property
    def uid(self) -> str: ...


class StoredObject(Protocol):
    """One committed version of one object."""

    @property
    def body(self) -> bytes:
        """Return the object as JSON, in its storage version."""
        ...

    @property
    def version(self) -> int: ...

    @property
    def metadata(self) -> StoredMetadata: ...

    @property
    def selectable(self) -> Document:
        """Return the fields that field selectors can ask for."""
        ...

    def document(self) -> Document:
        """Return a new copy, in the storage version, that the caller may change."""
        ...


class StoredTable(Protocol):
    """The committed objects of one kind. Not to be changed."""

    @property
    def version(self) -> int:
        """Return the version of the last change."""
        ...

    @property
    def records(self) -> Mapping[ObjectKey, StoredObject]: ...

    def get(self, key: ObjectKey) -> StoredObject | None: ...


class StoredPage(Protocol):
    """One page of a list."""

    @property
    def records(self) -> Sequence[StoredObject]: ...

    @property
    def version(self) -> int: ...

    @property
    def continue_(self) -> str: ...

    @property
    def remaining(self) -> int | None: ...

    def documents(self, api_version: str) -> Sequence[Document]:
        """Return the objects in one API version. Each is decoded when it is read, so read each once."""
        ...


class StoredEvent(Protocol):
    """An event of a watch. `body` is the object in its storage version if the event shows it as it is stored."""

    @property
    def type(self) -> EventType: ...

    @property
    def body(self) -> bytes | None: ...

    @property
    def document(self) -> Callable[[str], Document]:
        """Return a function that decodes the object in an API version."""
        ...


class Batch(Protocol):
    """Events that were available at the same time."""

    def __iter__(self) -> Iterator[StoredEvent]: ...

    def clear(self) -> None:
        """Release the events after handling them."""
        ...


class ServedStore(Cluster, Protocol):
    @property
    def catalogue(self) -> Catalogue: ...

    def table(self, resource: Resource) -> StoredTable:
        """Return the committed objects, for decisions that cannot wait."""
        ...

    def exists(self, resource: Resource, name: str, namespace: str = "") -> bool:
        """Return whether the next write will find the object."""
        ...

    async def page(self, resource: Resource, namespace: str, options: ListOptions) -> StoredPage:
        """List the objects as they are stored."""
        ...

    def watch_batches(
        self, resource: Resource, namespace: str, options: WatchOptions
    ) -> AbstractAsyncContextManager[AsyncIterator[Batch]]:
        """Watch in batches of the events that are available at the same time, with the objects as they are stored."""
        ...
