"""What became of a pod that a claim speaks of, by UID: the claim may be ahead of our copy of the pods, or far behind.

A pod of that name with another UID in the copy proves nothing: the one asked for may be the newer one. Only a removal
that was seen, or the API, says that a pod is gone.
"""

from collections import OrderedDict
from enum import Enum, auto

from devlet.cluster.client import Cluster
from devlet.cluster.informer import Informer
from devlet.errors import NotFound
from devlet.objects.documents import view
from devlet.objects.kinds import PODS
from devlet.objects.types.pod import Pod

__all__ = ["Fate", "PodFates", "is_done", "may_start"]


class Fate(Enum):
    LIVES = auto()  # it may use its claims, now or later
    DONE = auto()  # it is still there, and none of its containers runs or ever will
    GONE = auto()
    UNKNOWN = auto()


def is_done(pod: Pod) -> bool:
    return pod.is_finished or (pod.metadata.is_deleting and not pod.spec.node_name)


def may_start(pod: Pod) -> bool:
    """Whether it is worth while to get its claims ready."""
    return not pod.is_finished and not pod.metadata.is_deleting


class PodFates:
    """`remembered`: so many removed pods are known without a question to the API."""

    def __init__(self, cluster: Cluster, pods: Informer[Pod], remembered: int) -> None:
        self._cluster = cluster
        self._pods = pods
        self._remembered = remembered
        self._removed: OrderedDict[str, None] = OrderedDict()

    def removed(self, pod: Pod) -> None:
        if pod.spec.resource_claims or pod.status.extended_resource_claim_status:
            self._removed[pod.uid] = None
        if len(self._removed) > self._remembered:
            self._removed.popitem(last=False)

    def known(self, namespace: str, name: str, uid: str) -> Fate:
        if uid in self._removed:
            return Fate.GONE
        pod = self._pods.get(name, namespace)
        return Fate.UNKNOWN if pod is None or pod.uid != uid else _fate(pod)

    async def learned(self, namespace: str, name: str, uid: str) -> Fate:
        """Never UNKNOWN: what is not known is asked."""
        if (fate := self.known(namespace, name, uid)) is not Fate.UNKNOWN:
            return fate
        try:
            pod = view(Pod, await self._cluster.get(PODS, name, namespace))
        except NotFound:
            return Fate.GONE
        return _fate(pod) if pod.uid == uid else Fate.GONE


def _fate(pod: Pod) -> Fate:
    return Fate.DONE if is_done(pod) else Fate.LIVES
