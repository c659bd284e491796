"""Mark nodes that stopped renewing their lease as unreachable, so that no pod is scheduled there.

A node is lost if we have not seen its lease being renewed for `grace` seconds of our own clock. It gets the condition
Ready=Unknown and a taint, as from kube-controller-manager. When the node reports Ready again, the taint is removed.
Nodes that never had a lease are ignored, because no agent manages them.
"""

import logging
from dataclasses import dataclass, field

import anyio
import msgspec
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster, StrategicMergePatch
from devlet.cluster.informer import Changed, Informer
from devlet.cluster.quarantine import Quarantine
from devlet.errors import NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.work_queue import WorkQueue
from devlet.objects.documents import Document, view
from devlet.objects.kinds import LEASES, NODES
from devlet.objects.types.core import NODE_LEASES
from devlet.objects.types.node import Node
from devlet.objects.values.timestamps import format_time

__all__ = ["UNREACHABLE", "NodeLifecycle", "Settings"]

log = logging.getLogger(__name__)

UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class Settings:
    grace: float = 50.0  # seconds without a renewal, as in kube-controller-manager
    retry: Backoff = field(default=Backoff(0.2, 10.0))


class NodeLifecycle:
    def __init__(
        self, cluster: Cluster, clock: Clock, settings: Settings = Settings(), quarantine: Quarantine | None = None
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._nodes: Informer[Node] = Informer(cluster, NODES, lambda found: view(Node, found), quarantine=quarantine)
        self._leases: Informer[Document] = Informer(
            cluster, LEASES, lambda found: found, namespace=NODE_LEASES, quarantine=quarantine
        )
        self._renewed: dict[str, float] = {}  # when we last saw each lease being renewed
        self._queue: WorkQueue[str] = WorkQueue(self._sync, clock, workers=8, backoff=settings.retry)
        self._leases.on_change(self._lease_changed)
        self._nodes.on_change(self._node_changed)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._leases.run)
            await tasks.start(self._nodes.run)
            await tasks.start(self._queue.run)
            task_status.started()

    def _lease_changed(self, change: Changed[Document]) -> None:
        name = change.key[1]
        if change.new is not None:
            is_new = name not in self._renewed
            self._renewed[name] = self._clock.monotonic()
            if is_new or self._is_tainted(name):
                self._queue.add(name)

    def _node_changed(self, change: Changed[Node]) -> None:
        name = change.key[1]
        if change.new is None:
            self._renewed.pop(name, None)
            self._queue.forget(name)
        elif change.old is None or _is_ready(change.old) != _is_ready(change.new):
            if name in self._renewed and _is_ready(change.new):
                self._renewed[name] = self._clock.monotonic()  # reporting Ready counts as a renewal
            self._queue.add(name)

    def _is_tainted(self, name: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and any(taint.key == UNREACHABLE for taint in node.spec.taints)

    async def _sync(self, name: str) -> None:
        node, renewed = self._nodes.get(name), self._renewed.get(name)
        if node is None or renewed is None:
            return
        left = renewed + self._settings.grace - self._clock.monotonic()
        if left > 0:
            self._queue.add_after(name, left)
            if self._is_tainted(name) and _is_ready(node):
                await self._taint(node, None)
                log.info("node is back", extra=facts(node=name))
        elif not self._is_tainted(name) or _is_ready(node):
            await self._lose(node)

    async def _lose(self, node: Node) -> None:
        """Mark the node as lost. The taint is written first, because it keeps pods away."""
        log.warning("node lost", extra=facts(node=node.name, silent=self._settings.grace))
        now = format_time(self._clock.now())
        await self._taint(node, {"key": UNREACHABLE, "effect": "NoSchedule", "timeAdded": now})
        condition = {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "The node stopped renewing its lease.",
            "lastTransitionTime": now,
        }
        await self._patch(node.name, {"status": {"conditions": [condition]}}, "status")

    async def _taint(self, node: Node, ours: Document | None) -> None:
        """Write or remove our taint. All taints are one list, so the write names the version that it is based on."""
        others = [msgspec.to_builtins(taint) for taint in node.spec.taints if taint.key != UNREACHABLE]
        taints = [{k: v for k, v in taint.items() if v} for taint in others] + ([ours] if ours else [])
        guard = {"resourceVersion": node.metadata.resource_version}
        await self._patch(node.name, {"metadata": guard, "spec": {"taints": taints or None}})

    async def _patch(self, name: str, patch: Document, subresource: str = "") -> None:
        try:
            await self._cluster.patch(NODES, name, StrategicMergePatch(patch), subresource=subresource)
        except NotFound:
            pass


def _is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
