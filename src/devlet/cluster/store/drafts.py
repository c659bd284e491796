"""Writes that take long to stage. A thread prepares such a write as a draft, and the event loop commits it.

The thread only reads the ledger. The event loop compares what the thread read with the newest state. If nothing has
changed, the write gets its version at once. If another writer was faster, the thread prepares the draft again. So of
two conflicting writes only one succeeds, wherever each was prepared.
"""

from collections.abc import Callable

import msgspec

from devlet.cluster.client import WriteOptions
from devlet.cluster.served_store import Run
from devlet.cluster.store import guards
from devlet.cluster.store.ledger import Ledger, Pending
from devlet.cluster.store.records import Record
from devlet.cluster.store.staging import Staged, Staging
from devlet.errors import Conflict
from devlet.objects.documents import Document
from devlet.objects.identifiers import ObjectKey
from devlet.objects.kinds import Kind, Resource

__all__ = ["MAX_DRAFTS", "Draft", "Step", "stage"]

MAX_DRAFTS = 5  # of one write; kube-apiserver tries a patch just as often

Step = Callable[[Staging, WriteOptions], Staged]


class Draft:
    """The ledger as a thread sees it: what it reads is remembered, and what it writes is kept for later."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._read: dict[tuple[str, ObjectKey], tuple[Kind, Record | None]] = {}
        self._guarded: list[tuple[Document | None, Document | None]] = []
        self._written: tuple[Kind, ObjectKey, Document, bool] | None = None

    def newest(self, kind: Kind, key: ObjectKey) -> Record | None:
        """Return the same record as at the first call, whatever happens meanwhile."""
        if (kind.key, key) not in self._read:
            self._read[kind.key, key] = kind, self._ledger.newest(kind, key)
        return self._read[kind.key, key][1]

    def write(self, kind: Kind, key: ObjectKey, document: Document, *, deleted: bool = False) -> None:
        """Keep the write. Refuse an object that is too large here, so that the event loop need not encode it."""
        self._ledger.check_size(kind, key, msgspec.json.encode(document))
        self._written = kind, key, document, deleted

    def guard(self, new: Document | None, old: Document | None) -> None:
        """Keep the arguments of the guard. The event loop calls it, because it reads more than this object."""
        self._guarded.append((new, old))

    def check(self, options: WriteOptions) -> None:
        """Call the guard, and raise what it raises."""
        for new, old in self._guarded:
            guards.check(options, new, old)

    @property
    def is_current(self) -> bool:
        return all(self._ledger.newest(kind, key) is record for (_, key), (kind, record) in self._read.items())

    def commit(self) -> Pending | None:
        """Carry out the write, if there is one."""
        if self._written is None:
            return None
        kind, key, document, deleted = self._written
        return self._ledger.write(kind, key, document, deleted=deleted)


async def stage(
    ledger: Ledger, staging: Staging, resource: Resource, name: str, options: WriteOptions, run: Run, step: Step
) -> Staged:
    """Run `step(staging, options)` in a thread, and commit it. Raise Conflict if others keep changing the object."""
    for _ in range(MAX_DRAFTS):
        draft = Draft(ledger)
        document, _ = await run(_bound(step, staging.on(draft), guards.guarded_by(options, draft.guard)))
        if draft.is_current:
            draft.check(options)
            return document, draft.commit()
    raise Conflict(
        f'Operation cannot be fulfilled on {resource.name} "{name}": the object keeps being modified;'
        " please apply your changes to the latest version and try again",
        resource=resource.name,
        name=name,
    )


def _bound(step: Step, staging: Staging, options: WriteOptions) -> Callable[[], Staged]:
    return lambda: step(staging, options)
