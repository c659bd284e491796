"""One pod in the cluster: its newest known state, and the writes to it.

All of it is about one UID. If the cluster has a pod of the same name with another UID, this pod is gone.
"""

from typing import Protocol

from devlet.cluster.client import Cluster, DeleteOptions, Preconditions, StrategicMergePatch
from devlet.cluster.events import Recorder
from devlet.errors import Conflict, InvalidObject, NotFound
from devlet.node.pods import status
from devlet.objects.documents import Document, newest, view
from devlet.objects.identifiers import ContainerName
from devlet.objects.kinds import PODS
from devlet.objects.types.meta import ObjectReference
from devlet.objects.types.pod import Pod

__all__ = ["ApiObject", "PodObject", "reference"]


class PodObject(Protocol):
    """A pod as its worker sees it."""

    document: Document
    pod: Pod
    is_gone: bool

    @property
    def is_static(self) -> bool: ...

    def see(self, document: Document) -> None: ...

    async def write_status(self, wanted: Document) -> None: ...

    async def delete(self) -> None: ...

    def record(self, type: str, reason: str, message: str, container: ContainerName | None = None) -> None: ...


class ApiObject:
    is_static = False

    def __init__(self, cluster: Cluster, recorder: Recorder, document: Document) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self.document = document
        self.pod = view(Pod, document)
        self.is_gone = False

    def see(self, document: Document) -> None:
        known = newest(self.document, document)
        if known is not self.document:
            self.document, self.pod = known, view(Pod, known)

    async def write_status(self, wanted: Document) -> None:
        """Write the status if that changes anything. Do nothing if the pod is gone."""
        patch = status.patch(wanted, self.document)
        if patch is None or self.is_gone:
            return
        name, namespace = self.pod.name, self.pod.metadata.namespace
        try:
            answer = await self._cluster.patch(PODS, name, StrategicMergePatch(patch), namespace, subresource="status")
        except NotFound:
            self.is_gone = True
        except (Conflict, InvalidObject):  # a patch that names another UID is invalid, says the API server
            await self._read_again()
            if not self.is_gone:
                raise
        else:
            self.see(answer)

    async def delete(self) -> None:
        """Remove the pod from the cluster. To be called when nothing of it is left on this node."""
        precondition = Preconditions(uid=self.pod.uid)
        try:
            await self._cluster.delete(
                PODS, self.pod.name, self.pod.metadata.namespace, DeleteOptions(0, preconditions=precondition)
            )
        except NotFound:
            self.is_gone = True
        except Conflict:
            await self._read_again()
            if not self.is_gone:
                raise

    async def _read_again(self) -> None:
        try:
            found = await self._cluster.get(PODS, self.pod.name, self.pod.metadata.namespace)
        except NotFound:
            self.is_gone = True
            return
        if found["metadata"]["uid"] == self.pod.uid:
            self.see(found)
        else:
            self.is_gone = True

    def record(self, type: str, reason: str, message: str, container: ContainerName | None = None) -> None:
        """Record an event about the pod, or about one of its containers."""
        self._recorder.record(reference(self.pod, container), type, reason, message)


def reference(pod: Pod, container: ContainerName | None = None) -> ObjectReference:
    """Return the object of an event about the pod, or about one of its containers."""
    metadata = pod.metadata
    init = any(each.name == container for each in pod.spec.init_containers)
    return ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        field_path=f"spec.{'initContainers' if init else 'containers'}{{{container}}}" if container else "",
    )
