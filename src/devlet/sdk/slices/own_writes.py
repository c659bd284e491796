"""The publisher's own recent writes, which the watch may not have delivered yet.

Without them, the publisher would not see a slice that it just created, and create it again. Entries expire: if another
client deletes a new slice before the watch delivers it, the slice would otherwise seem to exist for ever. So the
publisher has to check its slices again after `ttl`.
"""

from collections.abc import Iterable

from msgspec import Struct

from devlet.cluster.informer import Changed
from devlet.objects.documents import Document

__all__ = ["OwnWrites"]


class _Entry(Struct, frozen=True):
    document: Document
    until: float


class OwnWrites:
    """Times are in seconds of a monotonic clock."""

    def __init__(self, ttl: float) -> None:
        self._ttl = ttl
        self._entries: dict[str, _Entry] = {}
        self._deleted: dict[str, float] = {}  # UIDs, and until when they are remembered

    def stored(self, document: Document, now: float) -> None:
        self._entries[document["metadata"]["name"]] = _Entry(document, now + self._ttl)

    def deleted(self, document: Document, now: float) -> None:
        self._entries.pop(document["metadata"]["name"], None)
        self._deleted[document["metadata"]["uid"]] = now + self._ttl

    def replaced(self, pool: str, documents: Iterable[Document], now: float) -> None:
        """Record that the pool has exactly these slices."""
        self._entries = {name: each for name, each in self._entries.items() if _pool(each.document) != pool}
        for document in documents:
            self.stored(document, now)

    def is_own(self, change: Changed[Document]) -> bool:
        """Return True if the change is one of these writes, or older. Forget a slice that another client deleted."""
        if change.new is not None:
            mine = self._entries.get(change.key[1])
            return mine is not None and not _is_newer(change.new, mine.document)
        uid = change.old["metadata"]["uid"] if change.old else ""
        mine = self._entries.get(change.key[1])
        if mine is not None and mine.document["metadata"]["uid"] == uid:
            del self._entries[change.key[1]]
        return self._deleted.pop(uid, None) is not None

    def overlaid(self, pool: str, seen: Iterable[Document], now: float) -> list[Document]:
        """Return the slices of a pool: each as it was seen, or as it was written if that is newer."""
        self._expire(now)
        found = {document["metadata"]["name"]: document for document in seen}
        for name, entry in self._entries.items():
            if _pool(entry.document) == pool and (name not in found or _is_newer(entry.document, found[name])):
                found[name] = entry.document
        return list(found.values())

    def _expire(self, now: float) -> None:
        self._entries = {name: entry for name, entry in self._entries.items() if entry.until > now}
        self._deleted = {uid: until for uid, until in self._deleted.items() if until > now}


def _pool(document: Document) -> str:
    return str(document["spec"]["pool"]["name"])


def _is_newer(a: Document, b: Document) -> bool:
    return int(a["metadata"]["resourceVersion"]) > int(b["metadata"]["resourceVersion"])
