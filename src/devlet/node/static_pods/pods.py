"""Static pods and their mirror pods: which static pods run, and what the cluster shows of them.

    file ──▶ StaticPod ──▶ StaticObject, with a worker ──▶ mirror pod in the cluster

A changed file is another pod, which starts when the previous one has released its devices. If a mirror pod is deleted,
it is created again and the static pod keeps running. If the file is removed, the mirror pod is deleted when the static
pod has ended. A pod of the same name that is not a mirror pod is left alone, and the static pod runs without a mirror.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from anyio.abc import TaskStatus
from msgspec import Struct

from devlet.cluster.client import Cluster, DeleteOptions, Preconditions, StrategicMergePatch
from devlet.cluster.events import Recorder
from devlet.errors import AlreadyExists, InvalidInput, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.work_queue import WorkQueue
from devlet.node.pods import status
from devlet.node.static_pods.manifest import MIRROR, StaticPod
from devlet.node.static_pods.static_object import StaticObject
from devlet.objects.documents import Document, newest
from devlet.objects.identifiers import NodeName, ObjectKey, PodUID
from devlet.objects.kinds import PODS

__all__ = ["Changes", "Manifests", "Settings", "StaticPods", "is_mirror"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    retry: Backoff = field(default=Backoff(0.2, 30.0))  # for a mirror pod that could not be written


class Manifests(AbstractContextManager[Any], Protocol):
    """The directory."""

    async def pods(self) -> Iterable[StaticPod]: ...

    async def changed(self) -> None: ...


class Changes(Struct, frozen=True):
    """`gone` are the pods to stop; `new` are the pods to start a worker for."""

    gone: tuple[PodUID, ...] = ()
    new: tuple[StaticObject, ...] = ()


def is_mirror(document: Document) -> bool:
    return MIRROR in (document["metadata"].get("annotations") or {})


class StaticPods:
    """`owner` returns the UID of the Node, or None while there is none. Without `manifests` there are no static pods,
    and mirror pods of an earlier run are deleted."""

    def __init__(
        self,
        cluster: Cluster,
        node: NodeName,
        recorder: Recorder,
        clock: Clock,
        manifests: Manifests | None = None,
        *,
        owner: Callable[[], str | None] = lambda: None,
        settings: Settings = Settings(),
    ) -> None:
        self._cluster = cluster
        self._node = node
        self._recorder = recorder
        self._manifests = manifests
        self._owner = owner
        self._wanted: dict[ObjectKey, StaticPod] = {}
        self._objects: dict[ObjectKey, StaticObject] = {}  # that have a worker
        self._mirrors: dict[ObjectKey, Document] = {}
        self._deleted: dict[ObjectKey, str] = {}  # the UID of the mirror that was deleted last
        self._queue = WorkQueue(self._sync, clock, backoff=settings.retry, failed=_failed)

    async def begin(self, mirrors: Iterable[Document]) -> tuple[StaticObject, ...]:
        """Return the pods that the files define at the start. `mirrors` are the mirror pods in the cluster: the status
        of those whose file has not changed is kept."""
        for document in mirrors:
            self.see(document)
        if self._manifests is None:
            return ()
        return self.replace(await self._manifests.pods()).new

    async def run(
        self, apply: Callable[[Changes], None], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Ready at once. Call `apply` whenever the files define other pods."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._queue.run)
            task_status.started()
            if self._manifests is None:
                return
            with self._manifests as manifests:
                while True:
                    await manifests.changed()
                    apply(self.replace(await manifests.pods()))

    def uid(self, namespace: str, name: str) -> PodUID | None:
        """Return the UID under which the static pod of that name runs."""
        found = self._objects.get((namespace, name))
        return found.static.uid if found else None

    def replace(self, wanted: Iterable[StaticPod]) -> Changes:
        """Make these the pods that the files define."""
        self._wanted = {each.key: each for each in wanted}
        gone = [each for key, each in self._objects.items() if not self._is_wanted(key, each)]
        for each in gone:
            each.is_gone = True
        new = [self._create_object(static) for key, static in self._wanted.items() if key not in self._objects]
        return Changes(tuple(each.static.uid for each in gone), tuple(new))

    def ended(self, uid: PodUID) -> Changes:
        """Note that a pod has ended whose file is gone or has changed. Return its successor, if the file defines
        one."""
        key = next((key for key, each in self._objects.items() if each.static.uid == uid and each.is_gone), None)
        if key is None:
            return Changes()
        del self._objects[key]
        self._queue.add(key)
        return Changes(new=(self._create_object(self._wanted[key]),)) if key in self._wanted else Changes()

    def see(self, mirror: Document) -> None:
        key = _key(mirror)
        self._mirrors[key] = newest(self._mirrors.get(key), mirror)
        self._queue.add(key)

    def lose(self, mirror: Document) -> None:
        """Note that a mirror pod is gone from the cluster."""
        key = _key(mirror)
        known = self._mirrors.get(key)
        if known is not None and known["metadata"]["uid"] == mirror["metadata"]["uid"]:
            del self._mirrors[key]
        self._queue.add(key)

    def _is_wanted(self, key: ObjectKey, subject: StaticObject) -> bool:
        static = self._wanted.get(key)
        return static is not None and static.uid == subject.static.uid

    def _create_object(self, static: StaticPod) -> StaticObject:
        mirror = self._mirrors.get(static.key)
        before = mirror.get("status") if mirror is not None and _hash(mirror) == static.uid else None
        made = self._objects[static.key] = StaticObject(static, self._recorder, self._queue.add, before)
        self._queue.add(static.key)
        log.info("static pod found", extra=facts(pod="/".join(static.key), podUID=static.uid))
        return made

    # Mirrors

    async def _sync(self, key: ObjectKey) -> None:
        subject, mirror = self._objects.get(key), self._mirrors.get(key)
        if subject is not None and subject.is_gone:
            return  # the mirror pod shows it until it has ended
        if mirror is None:
            if subject is not None:
                mirror = await self._create(subject.static)
        elif subject is None or _hash(mirror) != subject.static.uid or mirror["metadata"].get("deletionTimestamp"):
            return await self._delete(key, mirror)
        if subject is not None and mirror is not None:
            await self._write_status(subject, mirror)

    async def _create(self, static: StaticPod) -> Document:
        owner = self._owner()
        if owner is None:
            raise Unavailable(f"mirror of {'/'.join(static.key)}: the node is not registered")
        node = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": owner, "controller": True}
        metadata = static.mirror["metadata"]
        annotations = {**metadata["annotations"], MIRROR: static.uid}
        metadata = {**metadata, "annotations": annotations, "ownerReferences": [node]}
        namespace, name = static.key
        try:
            made = await self._cluster.create(PODS, {**static.mirror, "metadata": metadata}, namespace)
        except AlreadyExists:
            made = await self._cluster.get(PODS, name, namespace)
            if not is_mirror(made):
                raise InvalidInput(
                    f"pod {namespace}/{name} exists and is not a mirror pod: rename or delete it"
                ) from None
            self.see(made)
            raise Unavailable(f"mirror of {namespace}/{name}: one existed already") from None
        self._mirrors[static.key] = newest(self._mirrors.get(static.key), made)
        return made

    async def _delete(self, key: ObjectKey, mirror: Document) -> None:
        """Delete a mirror pod, but only once: a finalizer may keep it."""
        uid = mirror["metadata"]["uid"]
        if self._deleted.get(key) == uid:
            return
        namespace, name = key
        try:
            options = DeleteOptions(0, preconditions=Preconditions(uid=uid))
            await self._cluster.delete(PODS, name, namespace, options)
        except NotFound:
            self.lose(mirror)
        self._deleted[key] = uid

    async def _write_status(self, subject: StaticObject, mirror: Document) -> None:
        patch = status.patch(subject.wanted, mirror)
        if patch is None:
            return
        key = subject.static.key
        try:
            answer = await self._cluster.patch(PODS, key[1], StrategicMergePatch(patch), key[0], subresource="status")
        except NotFound:
            return self.lose(mirror)
        self._mirrors[key] = newest(self._mirrors.get(key), answer)


def _key(document: Document) -> ObjectKey:
    return document["metadata"]["namespace"], document["metadata"]["name"]


def _hash(mirror: Document) -> str:
    found: str = (mirror["metadata"].get("annotations") or {}).get(MIRROR, "")
    return found


def _failed(key: ObjectKey, error: Exception) -> None:
    log.warning("mirror pod not written", extra=facts(pod="/".join(key), err=error))
