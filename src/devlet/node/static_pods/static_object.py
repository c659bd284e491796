"""A static pod as its worker sees it. The file defines it; the cluster only shows it.

The status is kept here and is copied to the mirror pod when that is possible, so the worker never waits for the
cluster. After a restart, the status of the mirror pod shows what ran before.
"""

from collections.abc import Callable

from devlet.cluster.events import Recorder
from devlet.node.pods.api_object import reference
from devlet.node.static_pods.manifest import StaticPod
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import ContainerName, ObjectKey
from devlet.objects.types.pod import Pod

__all__ = ["StaticObject"]


class StaticObject:
    """`changed` is called when there is a new status to write to the mirror pod."""

    is_static = True

    def __init__(
        self,
        static: StaticPod,
        recorder: Recorder,
        changed: Callable[[ObjectKey], None],
        status: Document | None = None,
    ) -> None:
        self.static = static
        self._recorder = recorder
        self._changed = changed
        self.wanted: Document = {}  # fields of the status; null for those that it must not have
        self.document = static.document
        self.is_gone = False
        if status:
            self.document = {**static.document, "status": status}
        self.pod = view(Pod, self.document)

    def see(self, document: Document) -> None:
        """Do nothing: the file defines the pod."""

    async def write_status(self, wanted: Document) -> None:
        self.wanted = {**self.wanted, **wanted}
        status = {**(self.document.get("status") or {}), **wanted}
        self.document = {**self.document, "status": {key: value for key, value in status.items() if value is not None}}
        self.pod = view(Pod, self.document)
        self._changed(self.static.key)

    async def delete(self) -> None:
        """Do nothing: the mirror pod is deleted when the file is gone and the pod has ended."""

    def record(self, type: str, reason: str, message: str, container: ContainerName | None = None) -> None:
        self._recorder.record(reference(self.pod, container), type, reason, message)
