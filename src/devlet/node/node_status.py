"""Keeps the Node object of this node equal to what the machine and the device plugins have, and creates it if missing.

Only differences are written, at most every tenth of a second. Every five minutes, all conditions are written with the
time; in between, the lease shows that the node is alive (`node.lease`). If the Node is deleted, it is created again.
Its taints are not touched, and neither are labels and conditions of other writers.

When devlet stops, the Node is left as it is. If it said that the node is not ready, the cluster would taint it and
evict the pods that do not tolerate the taint, although pods keep running while devlet is restarted. If devlet does not
come back, the lease expires.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster, MergePatch, StrategicMergePatch
from devlet.cluster.events import WARNING, Recorder
from devlet.cluster.informer import Informer
from devlet.errors import AlreadyExists, DevletError, Forbidden, InvalidInput, NotFound
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.changes import Changes
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.node import capacity, node_document
from devlet.node.capacity import PluginCapacity, Resources
from devlet.node.host import Host
from devlet.objects.documents import Document, newest, view
from devlet.objects.identifiers import NodeName
from devlet.objects.kinds import NODES
from devlet.objects.types import node as views
from devlet.objects.types.meta import ObjectMeta, ObjectReference

__all__ = ["Devices", "NodeStatus", "Settings"]

log = logging.getLogger(__name__)

_AT_ONCE = 2  # attempts in a row without a delay when the Node turns out to be gone, or to exist already


@dataclass(frozen=True, slots=True)
class Settings:
    address: str = "127.0.0.1"  # at which other machines reach this node
    max_pods: int = 110  # as the kubelet
    interval: float = 0.1  # the least seconds between two writes
    heartbeat: float = 300.0  # the most seconds between two writes; as the kubelet
    retry: Backoff = field(default=Backoff(0.2, 10.0))


class Devices(Protocol):
    @property
    def checkpoint_existed(self) -> bool: ...

    def capacity(self) -> PluginCapacity: ...

    async def changed(self) -> None: ...


class _Machine(NamedTuple):
    """What the Node says about this machine, besides its devices."""

    host: Host
    runtime: str
    damage: Callable[[], Sequence[str]]
    annotations: Callable[[Mapping[str, str]], Mapping[str, str]]


class NodeStatus:
    """`runtime` is the version of the container runtime, as `name://version`. `damage` returns a text for each damaged
    file that was set aside. `annotations` returns those that the Node should have, given those that it has."""

    def __init__(
        self,
        cluster: Cluster,
        name: NodeName,
        devices: Devices,
        host: Host,
        runtime: str,
        recorder: Recorder,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        damage: Callable[[], Sequence[str]] = tuple,
        annotations: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda before: {},
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._devices = devices
        self._machine = _Machine(host, runtime, damage, annotations)
        self._recorder = recorder
        self._clock = clock
        self._settings = settings
        self._nodes = Informer(cluster, NODES, lambda document: document, field_selector=f"metadata.name={name}")
        self._known: Document | None = None
        self._changes = Changes()
        self._beat_due = False

    @property
    def uid(self) -> str | None:
        """The UID of the Node; None while there is none."""
        return self._known["metadata"]["uid"] if self._known else None

    @property
    def reference(self) -> ObjectReference:
        """For events about this node."""
        return ObjectReference(kind="Node", api_version="v1", name=self._name, uid=self.uid or self._name)

    @property
    def labels(self) -> Mapping[str, str] | None:
        """The labels of the Node; None while there is none."""
        return self._known["metadata"].get("labels") or {} if self._known else None

    def node(self) -> views.Node:
        """Return this node as it is now: labels, taints, and what can be allocated, even if not yet published."""
        metadata = (self._known or {}).get("metadata") or {}
        spec = (self._known or {}).get("spec") or {}
        return views.Node(
            metadata=ObjectMeta(name=self._name, labels=metadata.get("labels") or {}),
            spec=views.NodeSpec(taints=tuple(view(views.Taint, each) for each in spec.get("taints") or ())),
            status=views.NodeStatus(allocatable=self._resources(self._capacity_before()).allocatable),
        )

    def refresh(self) -> None:
        """Write the Node if anything that it should say has changed. Does not block."""
        self._changes.notify()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ready when the node is registered."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._nodes.run)
            self._known = self._nodes.get(self._name)
            seen = self._changes.version
            await self._until_done(first=True)
            task_status.started()
            tasks.start_soon(self._follow_devices)
            tasks.start_soon(self._follow_node)
            tasks.start_soon(self._beat)
            while True:
                seen = await self._changes.after(seen)
                await self._until_done()
                await self._clock.sleep(self._settings.interval)

    async def _beat(self) -> None:
        while True:
            await self._clock.sleep(self._settings.heartbeat)
            self._beat_due = True
            self._changes.notify()

    async def _follow_devices(self) -> None:
        while True:
            await self._devices.changed()
            self._changes.notify()

    async def _follow_node(self) -> None:
        async with self._nodes.changes() as changes:
            async for change in changes:
                if change.new is not None:
                    self._known = newest(self._known, change.new)
                elif self._known and change.old and change.old["metadata"]["uid"] == self._known["metadata"]["uid"]:
                    self._known = None
                self._changes.notify()

    async def _until_done(self, *, first: bool = False) -> None:
        for attempt, delay in enumerate(self._settings.retry.delays(random.random)):
            was_there = self._known is not None
            try:
                return await self._publish(first=first)
            except (NotFound, AlreadyExists) as e:
                self._known = await self._read() if isinstance(e, AlreadyExists) else None
                if attempt < _AT_ONCE and was_there is (self._known is None):
                    continue  # deleted or created meanwhile
                problem: DevletError = e
            except DevletError as e:
                problem = e
            log.warning("node status not written", extra=facts(node=self._name, err=problem))
            await self._clock.sleep(delay)

    async def _read(self) -> Document | None:
        try:
            return await self._cluster.get(NODES, self._name)
        except DevletError as e:
            log.warning("node not read", extra=facts(node=self._name, err=e))
            return None

    async def _publish(self, *, first: bool) -> None:
        if self._known is None:
            return await self._create()
        known = self._known
        if first:
            self._report_reboot(known)
        known = await self._mark(known, labels=first)
        wanted = self._wanted(self._capacity_before(first=first))
        patch = node_document.status_patch(known, wanted, beat=first or self._beat_due)
        if patch is None:
            return
        answer = await self._cluster.patch(NODES, self._name, StrategicMergePatch(patch), subresource="status")
        self._known = newest(self._known, answer)
        if self._beat_due:
            self._beat_due = False
            log.debug("node status renewed", extra=facts(node=self._name))
        else:
            log.info("node status written", extra=facts(node=self._name, keys=",".join(patch["status"])))

    async def _create(self) -> None:
        labels, annotations = node_document.labels(self._name, self._machine.host), dict(self._machine.annotations({}))
        metadata = {"name": self._name, "labels": labels, "annotations": annotations}
        document = {"metadata": metadata, "status": self._wanted({})}
        self._known = await self._cluster.create(NODES, document)
        log.info("node registered", extra=facts(node=self._name))

    async def _mark(self, known: Document, *, labels: bool) -> Document:
        """Write the annotations and, with `labels`, the labels that every node has. All others stay."""
        annotations = known["metadata"].get("annotations") or {}
        wanted = {
            "annotations": self._machine.annotations(annotations),
            "labels": node_document.labels(self._name, self._machine.host) if labels else {},
        }
        patch = node_document.metadata_patch(known, wanted)
        if patch is None:
            return known
        try:
            answer = await self._cluster.patch(NODES, self._name, MergePatch(patch))
        except (Forbidden, InvalidInput) as e:  # the status matters more, and needs another permission
            log.warning("node not labelled or annotated", extra=facts(node=self._name, err=e))
            return known
        self._known = newest(self._known, answer)
        return self._known

    def _report_reboot(self, known: Document) -> None:
        before = ((known.get("status") or {}).get("nodeInfo") or {}).get("bootID", "")
        if before and before != self._machine.host.boot_id:
            message = f"Node {self._name} has been rebooted, boot id: {self._machine.host.boot_id}"
            self._recorder.record(self.reference, WARNING, "Rebooted", message)

    def _capacity_before(self, *, first: bool = False) -> capacity.Texts:
        before: Document = ((self._known or {}).get("status") or {}).get("capacity") or {}
        return capacity.reset(before) if first and not self._devices.checkpoint_existed else before

    def _resources(self, before: capacity.Texts) -> Resources:
        machine = self._machine.host.capacity | {"pods": str(self._settings.max_pods)}
        return capacity.of_node(before, machine, self._devices.capacity())

    def _wanted(self, before: capacity.Texts) -> Document:
        return node_document.wanted_status(
            self._resources(before),
            self._machine.host,
            self._machine.runtime,
            self._name,
            self._settings.address,
            self._machine.damage(),
            self._clock.now(),
        )
