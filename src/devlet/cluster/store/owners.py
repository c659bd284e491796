"""Who owns whom: an index over ownerReferences, kept by the ledger."""

from collections.abc import Callable, Set

from devlet.cluster.store.records import Record
from devlet.objects.identifiers import ObjectKey

_NOBODY: Set[str] = frozenset()
Item = tuple[str, ObjectKey]  # storage key of the kind, key of the object


class Owners:
    def __init__(self) -> None:
        self._dependents: dict[str, set[Item]] = {}
        self._listener: Callable[[str, Record | None, Record | None], None] = lambda kind, old, new: None

    def listen(self, listener: Callable[[str, Record | None, Record | None], None]) -> None:
        """Be told of every change that may leave an object without an owner, or an owner without dependents."""
        self._listener = listener

    def dependents(self, uid: str) -> frozenset[Item]:
        return frozenset(self._dependents.get(uid, ()))

    def update(self, kind: str, old: Record | None, new: Record | None) -> None:
        before, after = _owners(old), _owners(new)
        record = new or old
        if record is None:
            return
        for uid in before - after:
            items = self._dependents[uid]
            items.discard((kind, record.key))
            if not items:
                del self._dependents[uid]
        for uid in after - before:
            self._dependents.setdefault(uid, set()).add((kind, record.key))
        if (
            before
            or after
            or new is None
            or new.metadata.deletion_timestamp
            or self._dependents.get(record.metadata.uid)
        ):
            self._listener(kind, old, new)


def _owners(record: Record | None) -> Set[str]:
    if record is None or not (references := record.metadata.owner_references):
        return _NOBODY
    return {owner.uid for owner in references}
