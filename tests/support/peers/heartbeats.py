"""A node that exists only as objects: a Node that can take pods, and the Lease that says it is alive.

    async with beating_node(cluster, "n1"):
        ...  # kube-scheduler may bind pods to n1, kube-controller-manager sees it renew its lease

Nothing runs the pods. When the block is left the node falls silent, but its objects stay: after the grace period
kube-controller-manager calls it unreachable.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from types import MappingProxyType

from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster, MergePatch
from devlet.errors import AlreadyExists
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import LEASES, NODES
from devlet.objects.types.core import NODE_LEASES

__all__ = ["beating_node", "node"]

LEASE_DURATION = 40  # seconds, as the kubelet
CAPACITY: Mapping[str, str] = MappingProxyType({"cpu": "4", "memory": "8Gi", "pods": "110"})


def node(name: str, now: datetime, capacity: Mapping[str, str] = CAPACITY) -> Document:
    """A Node that reports itself ready."""
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    states = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    conditions = [
        {"type": type_, "status": state, "reason": "Beating", "lastHeartbeatTime": at, "lastTransitionTime": at}
        for type_, state in states.items()
    ]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": dict(capacity), "allocatable": dict(capacity), "conditions": conditions},
    }


@asynccontextmanager
async def beating_node(
    cluster: Cluster,
    name: str,
    *,
    every: float = 10.0,
    capacity: Mapping[str, str] = CAPACITY,
    clock: Clock = SystemClock(),
) -> AsyncIterator[Document]:
    """Yields the Node, made if there is none, once its lease is there; renews that every so many seconds."""
    try:
        made = await cluster.create(NODES, node(name, clock.now(), capacity))
    except AlreadyExists:
        made = await cluster.get(NODES, name)
    async with running(partial(_beat, cluster, name, every, clock)):
        yield made


async def _beat(
    cluster: Cluster, name: str, every: float, clock: Clock, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
) -> None:
    lease = {"metadata": {"name": name}, "spec": _renewed(clock) | {"holderIdentity": name}}
    try:
        await cluster.create(LEASES, lease, NODE_LEASES)
    except AlreadyExists:
        await _renew(cluster, name, clock)
    task_status.started()
    while True:
        await clock.sleep(every)
        await _renew(cluster, name, clock)


async def _renew(cluster: Cluster, name: str, clock: Clock) -> None:
    await cluster.patch(LEASES, name, MergePatch({"spec": _renewed(clock)}), NODE_LEASES)


def _renewed(clock: Clock) -> Document:
    return {"leaseDurationSeconds": LEASE_DURATION, "renewTime": clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
