"""The claim controller: every change of a pod, claim, template or node checks the pods and claims that it concerns.

The check is cheap, because everything is in memory. Only what needs work goes into the queue. A queue entry may be out
of date when it is processed, so the work decides again.
"""

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster
from devlet.cluster.events import Recorder
from devlet.cluster.informer import Changed
from devlet.control.claim_writes import ClaimWriter
from devlet.control.claims.claim_sync import ClaimSync
from devlet.control.claims.known_claims import KnownClaims
from devlet.control.claims.metrics import ClaimMetrics
from devlet.control.claims.pod_outcomes import PodOutcomes, is_done
from devlet.control.claims.pod_sync import PodSync
from devlet.control.informers import BY_CLAIM, BY_CONSUMER, BY_NODE, BY_OWNER, BY_TEMPLATE, Informers
from devlet.errors import Conflict, DevletError
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.metrics import Registry
from devlet.kit.work_queue import WorkQueue
from devlet.objects.documents import Document
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod

__all__ = ["ClaimController", "Settings"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    workers: int = 50
    retry: Backoff = field(default=Backoff(0.005, 300.0))
    removed_pods: int = 10_000  # remembered deletions; the API is asked about older ones


class _Work(NamedTuple):
    kind: str
    namespace: str
    name: str


class ClaimController:
    """The informers run elsewhere, and must be complete before `run`."""

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        recorder: Recorder,
        clock: Clock,
        metrics: Registry,
        settings: Settings = Settings(),
    ) -> None:
        self._informers = informers
        self._outcomes = PodOutcomes(cluster, informers.pods, settings.removed_pods)
        self._known = KnownClaims(informers.claims)
        self._claims = ClaimSync(cluster, informers, self._outcomes, self._known)
        writer, counted = ClaimWriter(cluster, clock), ClaimMetrics(metrics, informers.claims)
        self._pods = PodSync(cluster, writer, informers, self._known, recorder, counted)
        self._queue: WorkQueue[_Work] = WorkQueue(
            self._sync, clock, workers=settings.workers, backoff=settings.retry, failed=_failed
        )
        self._running = False
        self._listening = False

    @property
    def is_idle(self) -> bool:
        """Return True if nothing is being done or ready to be done. Something may be retried later."""
        return self._queue.is_idle

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self._running = True
        try:
            self._check_all()
            await self._queue.run(task_status=task_status)
        finally:
            self._running = False

    def _check_all(self) -> None:
        if self._listening:
            for claim in self._informers.claims.all():
                self._check_claim(claim)
            for pod in self._informers.pods.all():
                self._check_pod(pod)
        else:
            self._listening = True  # new listeners are called with the existing objects
            self._informers.claims.on_change(self._claim_changed)
            self._informers.pods.on_change(self._pod_changed)
            self._informers.templates.on_change(self._template_changed)
            self._informers.nodes.on_change(self._node_changed)

    def _claim_changed(self, change: Changed[ResourceClaim]) -> None:
        self._known.delivered(change)
        if change.new is not None:
            self._check_claim(change.new)
        for pod in self._informers.pods.by_index(BY_CLAIM, "/".join(change.key)):
            self._check_pod(pod)

    def _pod_changed(self, change: Changed[Pod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            self._outcomes.removed(old)
            self._check_claims_of(old)
            old = None
        if new is not None:
            if old is None or _affects_claims(old, new):
                self._check_claims_of(new)
            self._check_pod(new)

    def _template_changed(self, change: Changed[Document]) -> None:
        if change.new is not None:
            for pod in self._informers.pods.by_index(BY_TEMPLATE, "/".join(change.key)):
                self._check_pod(pod)

    def _node_changed(self, change: Changed[Node]) -> None:
        """A claim may be usable on a node whose labels have changed."""
        before = change.old.metadata.labels if change.old else None
        if change.new is not None and change.new.metadata.labels != before:
            for pod in self._informers.pods.by_index(BY_NODE, change.key[1]):
                self._check_pod(pod)

    def _check_claims_of(self, pod: Pod) -> None:
        for index in (BY_CONSUMER, BY_OWNER):
            for claim in self._informers.claims.by_index(index, pod.uid):
                self._check_claim(claim)

    def _check_claim(self, claim: ResourceClaim) -> None:
        if self._running and self._claims.needs_work(claim):
            self._queue.add(_Work("claim", claim.metadata.namespace, claim.metadata.name))

    def _check_pod(self, pod: Pod) -> None:
        if self._running and self._pods.needs_work(pod):
            self._queue.add(_Work("pod", pod.metadata.namespace, pod.metadata.name))

    async def _sync(self, work: _Work) -> None:
        part = self._pods if work.kind == "pod" else self._claims
        await part.sync(work.namespace, work.name)


def _failed(work: _Work, error: Exception) -> None:
    if isinstance(error, Conflict):
        log.debug("update conflict, retrying", extra=facts(**{work.kind: f"{work.namespace}/{work.name}"}))
    elif isinstance(error, DevletError):
        log.warning("claims not synced", extra=facts(**{work.kind: f"{work.namespace}/{work.name}"}, err=error))


def _affects_claims(old: Pod, new: Pod) -> bool:
    """Return True if the change may affect what has to be done for the claims of the pod."""
    return (
        is_done(old) != is_done(new)
        or old.spec.node_name != new.spec.node_name
        or old.metadata.is_deleting != new.metadata.is_deleting
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    )
