"""What became of the pods that claims refer to, by UID. A claim may be newer or much older than our copy of the pods.

If the copy has a pod of that name with another UID, the pod in question may be the newer one. Only an observed deletion
or the API shows that a pod is gone.
"""

from collections import OrderedDict
from enum import Enum, auto

from devlet.cluster.client import Cluster
from devlet.cluster.informer import Informer
from devlet.errors import NotFound
from devlet.objects.documents import view
from devlet.objects.kinds import PODS
from devlet.objects.types.pod import Pod

__all__ = ["PodOutcome", "PodOutcomes", "is_done", "may_start"]


class PodOutcome(Enum):
    ALIVE = auto()  # it may use its claims, now or later
    FINISHED = auto()  # it exists, and none of its containers runs or ever will
    GONE = auto()
    UNKNOWN = auto()


def is_done(pod: Pod) -> bool:
    """Return True if none of the pod's containers runs or ever will."""
    return pod.is_finished or (pod.metadata.is_deleting and not pod.spec.node_name)


def may_start(pod: Pod) -> bool:
    """Return True if the pod may start containers, so that its claims are worth preparing."""
    return not pod.is_finished and not pod.metadata.is_deleting


class PodOutcomes:
    """`remembered` limits the deleted pods that are known without asking the API."""

    def __init__(self, cluster: Cluster, pods: Informer[Pod], remembered: int) -> None:
        self._cluster = cluster
        self._pods = pods
        self._remembered = remembered
        self._removed: OrderedDict[str, None] = OrderedDict()

    def removed(self, pod: Pod) -> None:
        """Note the deletion of a pod."""
        if pod.spec.resource_claims or pod.status.extended_resource_claim_status:
            self._removed[pod.uid] = None
        if len(self._removed) > self._remembered:
            self._removed.popitem(last=False)

    def known(self, namespace: str, name: str, uid: str) -> PodOutcome:
        """Return what is known without asking the API."""
        if uid in self._removed:
            return PodOutcome.GONE
        pod = self._pods.get(name, namespace)
        return PodOutcome.UNKNOWN if pod is None or pod.uid != uid else _outcome(pod)

    async def find(self, namespace: str, name: str, uid: str) -> PodOutcome:
        """Return the outcome, asking the API if necessary; never UNKNOWN."""
        if (outcome := self.known(namespace, name, uid)) is not PodOutcome.UNKNOWN:
            return outcome
        try:
            pod = view(Pod, await self._cluster.get(PODS, name, namespace))
        except NotFound:
            return PodOutcome.GONE
        return _outcome(pod) if pod.uid == uid else PodOutcome.GONE


def _outcome(pod: Pod) -> PodOutcome:
    return PodOutcome.FINISHED if is_done(pod) else PodOutcome.ALIVE
