"""The slices in the cluster, and every change of a slice since the watch began, whoever made it."""

from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster, EventType, WatchOptions
from devlet.errors import DevletError
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sanity.journal import Journal

__all__ = ["Change", "SliceHistory"]

_KEPT = 10_000  # changes
_PAUSE = 0.2  # seconds until a watch that ended is restarted


@dataclass(frozen=True, slots=True)
class Change:
    type: EventType
    slice: Document


class SliceHistory:
    """Runs as a task. `slices` maps names to slices."""

    def __init__(self, cluster: Cluster) -> None:
        self.slices: dict[str, Document] = {}
        self.changes = Journal[Change](_KEPT)
        self._cluster = cluster

    def of(self, driver: str) -> list[Document]:
        """Return the slices of a driver, ordered by name."""
        return [each for _, each in sorted(self.slices.items()) if each["spec"]["driver"] == driver]

    @property
    def count(self) -> int:
        """The number of changes."""
        return self.changes.added

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        return await self.changes.until(holds, within)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watch slices. This is ready immediately; slices that already exist are the first changes."""
        task_status.started()
        while True:
            try:
                async with self._cluster.watch(RESOURCE_SLICES, options=WatchOptions()) as events:
                    self.slices.clear()
                    async for event in events:
                        self._take(Change(event.type, event.object))
            except DevletError:
                pass
            await anyio.sleep(_PAUSE)

    def _take(self, change: Change) -> None:
        if change.type is EventType.BOOKMARK:
            return
        name = change.slice["metadata"]["name"]
        if change.type is EventType.DELETED:
            self.slices.pop(name, None)
        else:
            self.slices[name] = change.slice
        self.changes.append(change)
