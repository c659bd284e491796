"""Delete a pod from a tainted device: event, condition, deletion. Each may have been done by an earlier attempt.

The pod is read first, because the informer may still have a previous pod of the same name.
"""

from collections.abc import Callable
from typing import NamedTuple

from devlet.cluster.client import Cluster, DeleteOptions, Preconditions, StrategicMergePatch
from devlet.cluster.events import NORMAL, Recorder
from devlet.errors import NotFound
from devlet.kit.clock import Clock
from devlet.objects.documents import Document, view
from devlet.objects.kinds import PODS
from devlet.objects.types.meta import ObjectReference
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import format_time

__all__ = ["Deleter", "PodKey"]

EVENT = "DeviceTaintManagerEviction"
CONDITION: Document = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByDeviceTaintManager",
    "message": "Device Taint manager: deleting due to NoExecute taint",
}


class PodKey(NamedTuple):
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Deleter:
    def __init__(self, cluster: Cluster, recorder: Recorder, clock: Clock) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._clock = clock

    async def delete(self, key: PodKey, wanted: Callable[[], bool]) -> bool:
        """Delete the pod. Return False if it is gone or being deleted already, or if `wanted` is False after reading
        it."""
        try:
            pod = view(Pod, await self._cluster.get(PODS, key.name, key.namespace))
            if pod.uid != key.uid or pod.metadata.is_deleting or pod.is_finished or not wanted():
                return False
            self._record(key, "Marking for deletion")
            await self._mark(pod)
            only = DeleteOptions(preconditions=Preconditions(uid=key.uid))
            await self._cluster.delete(PODS, key.name, key.namespace, only)
        except NotFound:
            return False
        return True

    def cancel(self, key: PodKey) -> None:
        self._record(key, "Cancelling deletion")

    def _record(self, key: PodKey, message: str) -> None:
        about = ObjectReference(kind="Pod", api_version="v1", namespace=key.namespace, name=key.name, uid=key.uid)
        self._recorder.record(about, NORMAL, EVENT, message)

    async def _mark(self, pod: Pod) -> None:
        known = next((each for each in pod.status.conditions if each.type == CONDITION["type"]), None)
        if known is not None and (known.status, known.reason, known.message) == tuple(CONDITION.values())[1:]:
            return
        began = (
            {}
            if known is not None and known.status == "True"
            else {"lastTransitionTime": format_time(self._clock.now())}
        )
        patch = {"metadata": {"uid": pod.uid}, "status": {"conditions": [CONDITION | began]}}
        await self._cluster.patch(
            PODS, pod.name, StrategicMergePatch(patch), pod.metadata.namespace, subresource="status"
        )
