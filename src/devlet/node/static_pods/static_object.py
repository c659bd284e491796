"""A static pod as its worker sees it. The file is what counts; the cluster only hears of it.

Its status is kept here and goes to the mirror pod when that is possible, so nothing the worker does waits for the
cluster. After a restart the status that the mirror pod has tells what ran.
"""

from collections.abc import Callable

from devlet.cluster.events import Recorder
from devlet.node.pods.api_object import reference
from devlet.node.static_pods.manifest import Key, StaticPod
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import ContainerName
from devlet.objects.types.pod import Pod

__all__ = ["StaticObject"]


class StaticObject:
    """`changed` is called when the mirror pod has to be told of a new status."""

    is_static = True

    def __init__(
        self, static: StaticPod, recorder: Recorder, changed: Callable[[Key], None], status: Document | None = None
    ) -> None:
        self.static = static
        self._recorder = recorder
        self._changed = changed
        self.wanted: Document = {}  # of the status; null: there is no such thing
        self.document = static.document
        self.is_gone = False
        if status:
            self.document = {**static.document, "status": status}
        self.pod = view(Pod, self.document)

    def see(self, document: Document) -> None:
        """The file says what it is."""

    async def write_status(self, wanted: Document) -> None:
        self.wanted = {**self.wanted, **wanted}
        status = {**(self.document.get("status") or {}), **wanted}
        self.document = {**self.document, "status": {key: value for key, value in status.items() if value is not None}}
        self.pod = view(Pod, self.document)
        self._changed(self.static.key)

    async def delete(self) -> None:
        """There is nothing to remove: the mirror pod goes when the file has gone."""

    def record(self, type: str, reason: str, message: str, container: ContainerName | None = None) -> None:
        self._recorder.record(reference(self.pod, container), type, reason, message)
