"""The pods of this node: a worker for each, which learns from here what changes in the cluster.

Before the first pod is admitted, the devices of pods that have finished or are gone are released.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import checkpoint
from msgspec import ValidationError

from devlet.cluster.client import Cluster
from devlet.cluster.events import Recorder
from devlet.cluster.informer import Changed, Informer
from devlet.cluster.quarantine import Quarantine
from devlet.errors import DevletError
from devlet.kit.chance import random
from devlet.kit.clock import Clock, wait
from devlet.kit.facts import facts
from devlet.kit.parts import first
from devlet.node.admission import Admission, Topology
from devlet.node.claims import pod_claims
from devlet.node.pods.api_object import ApiObject, PodObject
from devlet.node.pods.parts import ClaimHealth, Claims, Devices, Parts, Settings
from devlet.node.pods.worker import PodWorker
from devlet.node.static_pods.pods import Changes, StaticPods, is_mirror
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.kinds import PODS
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.runtime.containers import Runtime

__all__ = ["PodManager", "Settings"]

log = logging.getLogger(__name__)

_AT_ONCE = 8  # workers that start in one turn of the event loop


class PodManager:
    """`node` returns this node as it is now: its labels and what can be allocated on it. `static` are the pods that
    files on this node define; their mirror pods in the cluster get no workers."""

    def __init__(
        self,
        cluster: Cluster,
        node_name: NodeName,
        devices: Devices,
        claims: Claims,
        topology: Topology,
        runtime: Runtime,
        recorder: Recorder,
        clock: Clock,
        settings: Settings = Settings(),
        *,
        node: Callable[[], Node],
        claim_health: ClaimHealth = lambda pod, container: (),
        static: StaticPods | None = None,
        quarantine: Quarantine | None = None,
    ) -> None:
        self._quarantine = quarantine or Quarantine()
        admission = Admission(devices, topology, node)
        limiter = anyio.CapacityLimiter(settings.at_once)
        self._parts = Parts(
            cluster, devices, claims, claim_health, admission, runtime, recorder, clock, limiter, settings
        )
        of_node = f"spec.nodeName={node_name}"
        self._pods = Informer(cluster, PODS, lambda document: document, field_selector=of_node)
        self._static = static or StaticPods(cluster, node_name, recorder, clock)
        self._workers: dict[PodUID, PodWorker] = {}
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Ready when the present pods are known and the devices of former pods are released."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._pods.run)
            readable = sorted(filter(self._reads, self._pods.all()), key=_age)
            present = [each for each in readable if not is_mirror(each)]
            static = await self._static.begin(filter(is_mirror, readable))
            await self._recover([view(Pod, document) for document in present] + [each.pod for each in static], tasks)
            for document in present:
                self._try(document, partial(self._add_document, document))
            for each in static:
                self._add(each)
            self._tasks = tasks
            tasks.start_soon(self._static.run, partial(self._change_static, tasks=tasks))
            tasks.start_soon(self._follow_devices)
            tasks.start_soon(self._follow_claims)
            tasks.start_soon(self._reconcile_claims)
            try:
                async with self._pods.changes() as changes:
                    task_status.started()
                    await self._start_all(tasks)
                    async for change in changes:
                        self._try(change.new or change.old or {}, partial(self._apply, change, tasks))
            finally:
                self._tasks = None

    def active(self) -> list[Pod]:
        """Return the pods that may hold devices: those that have not finished and were not rejected or stopped."""
        return [worker.pod for worker in self._workers.values() if worker.is_active]

    def find(self, namespace: str, name: str) -> Pod | None:
        """Return the active pod of that name."""
        document = self._pods.get(name, namespace)
        uid = self._static.uid(namespace, name) or (_uid(document) if document else None)
        worker = self._workers.get(uid) if uid else None
        return worker.pod if worker and worker.is_active else None

    def health_changed(self, pods: frozenset[PodUID]) -> None:
        """Update the status of these pods: the health of their devices changed. Does not block."""
        for worker in filter(None, map(self._workers.get, pods)):
            worker.health_changed()
            if self._tasks is not None:
                self._settle(worker, self._tasks)

    def claim_changed(self, pod: PodUID) -> None:
        """Retry preparing the pod's claims: one that it waits for changed. Does not block."""
        if worker := self._workers.get(pod):
            worker.claims_changed()

    async def _recover(self, pods: list[Pod], tasks: TaskGroup) -> None:
        """Find out what runs and which pod holds what. To be awaited before the first worker starts."""
        parts = self._parts
        await self._until_done(partial(parts.runtime.recover, pods), "runtime not recovered")
        alive = [pod for pod in pods if not pod.is_finished or await self._still_runs(pod)]
        parts.devices.learn([pod for pod in alive if await self._survived(pod)])
        done = anyio.Event()
        tasks.start_soon(self._release_others, frozenset(pod.uid for pod in alive), done)
        await wait(done, parts.clock, parts.settings.clean_up)

    async def _survived(self, pod: Pod) -> bool:
        """Return True if containers of the pod were started, and all of them since the machine booted."""
        runs = (await self._parts.runtime.runs(pod)).values()
        return bool(runs) and not any(run.exit is not None and run.exit.is_lost for run in runs)

    async def _still_runs(self, pod: Pod) -> bool:
        """Return True if a container runs. A pod that was declared finished while devlet was down may have some: it
        keeps its devices until it is stopped."""
        return any(run.is_running for run in (await self._parts.runtime.runs(pod)).values())

    async def _release_others(self, keep: frozenset[PodUID], done: anyio.Event) -> None:
        await self._until_done(partial(self._parts.devices.retain, keep), "stale devices not released")
        done.set()

    async def _until_done(self, work: Callable[[], Awaitable[None]], problem: str) -> None:
        for delay in self._parts.settings.retry.delays(random.random):
            try:
                return await work()
            except DevletError as e:
                log.warning("start of the pods delayed", extra=facts(problem=problem, err=e))
                await self._parts.clock.sleep(delay)

    async def _follow_devices(self) -> None:
        """Let pods try again that wait for a device plugin."""
        while True:
            await self._parts.devices.changed()
            for worker in self._workers.values():
                worker.devices_changed()

    async def _follow_claims(self) -> None:
        """Let pods try again that wait for a driver, or for a claim that another pod uses."""
        version = 0
        while True:
            version = await self._parts.claims.changed(version)
            for worker in self._workers.values():
                worker.claims_changed()

    async def _reconcile_claims(self) -> None:
        """Unprepare the claims of pods that are gone: now, whenever drivers or claims change, and periodically."""
        claims, settings = self._parts.claims, self._parts.settings
        while True:
            version = claims.version
            uncertain = [worker.pod for worker in self._workers.values() if worker.awaits_claims]
            await claims.reconcile(frozenset(self._workers), {key for pod in uncertain for key in pod_claims.keys(pod)})
            await first(partial(claims.changed, version), partial(self._parts.clock.sleep, settings.reconcile))

    def _reads(self, document: Document) -> bool:
        """Return True if the pod can be decoded. If not, it gets a worker as soon as it can be."""
        try:
            view(Pod, document)
        except ValidationError as e:
            self._quarantine.add(PODS, document, e)
            return False
        return True

    def _try(self, document: Document, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as e:  # the other pods are still served
            handler = "" if isinstance(e, ValidationError) else self._apply.__qualname__
            self._quarantine.add(PODS, document, e, handler=handler)

    def _apply(self, change: Changed[Document], tasks: TaskGroup) -> None:
        """Pass a change on. A pod with a worker does not become a mirror pod, even if its annotations say so."""
        if any(is_mirror(each) and _uid(each) not in self._workers for each in (change.old, change.new) if each):
            return self._apply_mirror(change, tasks)
        if change.old is not None and (change.new is None or _uid(change.new) != _uid(change.old)):
            self._remove(_uid(change.old), tasks)
        if change.new is not None:
            self._see(change.new, tasks)

    def _apply_mirror(self, change: Changed[Document], tasks: TaskGroup) -> None:
        """Pass on a change of a mirror pod. The pod before or after it may be an ordinary one of the same name."""
        if change.old is not None and (change.new is None or _uid(change.new) != _uid(change.old)):
            self._static.lose(change.old) if is_mirror(change.old) else self._remove(_uid(change.old), tasks)
        if change.new is not None:
            self._static.see(change.new) if is_mirror(change.new) else self._see(change.new, tasks)

    def _change_static(self, changes: Changes, tasks: TaskGroup) -> None:
        for uid in changes.gone:
            self._remove(uid, tasks)
        for each in changes.new:
            self._settle(self._add(each), tasks)

    def _see(self, document: Document, tasks: TaskGroup) -> None:
        worker = self._workers.get(_uid(document))
        if worker is None:
            return self._settle(self._add_document(document), tasks)
        worker.update(document)
        self._settle(worker, tasks)

    def _add_document(self, document: Document) -> PodWorker:
        return self._add(ApiObject(self._parts.cluster, self._parts.recorder, document))

    def _add(self, subject: PodObject) -> PodWorker:
        worker = self._workers[subject.pod.uid] = PodWorker(subject, self._parts)
        return worker

    async def _start_all(self, tasks: TaskGroup) -> None:
        """Start the workers that were added so far, a few at a time so that other tasks get their turn."""
        for number, worker in enumerate(list(self._workers.values())):
            self._settle(worker, tasks)
            if number % _AT_ONCE == 0:
                await checkpoint()

    def _remove(self, uid: PodUID, tasks: TaskGroup) -> None:
        if worker := self._workers.get(uid):
            worker.update(None)
            self._settle(worker, tasks)

    def _settle(self, worker: PodWorker, tasks: TaskGroup) -> None:
        """Start the worker if it has work, or forget it if its pod is gone and nothing is left to do."""
        if worker.has_work and not worker.is_running:
            worker.is_running = True
            tasks.start_soon(self._work, worker, tasks)
        elif not worker.has_work and worker.is_gone:
            self._forget(worker, tasks)

    async def _work(self, worker: PodWorker, tasks: TaskGroup) -> None:
        try:
            await worker.run()
        finally:
            worker.is_running = False
        if worker.is_gone:
            self._forget(worker, tasks)

    def _forget(self, worker: PodWorker, tasks: TaskGroup) -> None:
        self._workers.pop(worker.pod.uid, None)
        self._change_static(self._static.ended(worker.pod.uid), tasks)


def _uid(document: Document) -> PodUID:
    return PodUID(document["metadata"]["uid"])


def _age(document: Document) -> tuple[str, str]:
    return document["metadata"].get("creationTimestamp") or "", document["metadata"]["uid"]
