"""Evict pods from devices with a NoExecute taint, at the time that the tolerations of their claims allow.

Listeners plan, the queue acts. Every change checks the pods that it concerns at once; their evictions stay planned
until they are done. All state can be computed from the cluster's objects, so a controller that takes over comes to the
same plan. As in Kubernetes, disruption budgets are not considered.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster
from devlet.cluster.events import Recorder
from devlet.cluster.informer import Changed
from devlet.control.informers import Informers
from devlet.control.taints import rule_reporter
from devlet.control.taints.deletion import Deleter, PodKey
from devlet.control.taints.device_taints import DeviceTaints
from devlet.control.taints.evictions import Eviction
from devlet.control.taints.rule_reporter import RuleReporter
from devlet.control.taints.rule_status import NO_EFFECT, Counts
from devlet.control.taints.usage import Usage
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.metrics import Registry
from devlet.kit.work_queue import WorkQueue
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.objects.types.taint_rule import DeviceTaintRule, DeviceTaintSelector

__all__ = ["Settings", "TaintController"]

log = logging.getLogger(__name__)

_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)  # seconds


@dataclass(frozen=True, slots=True)
class Settings:
    workers: int = 8
    retry: Backoff = field(default=Backoff(0.005, 60.0))
    workloads: bool = False  # claims may be reserved for pod groups
    status: rule_reporter.Settings = field(default=rule_reporter.Settings())


@dataclass(slots=True)
class _Work:
    """What is planned and done while the controller runs. `evicted` has deleted pods that the informer still has;
    `evictions` counts evicted pods by the name of the rule."""

    planned: dict[PodKey, Eviction] = field(default_factory=dict)
    evicted: set[PodKey] = field(default_factory=set)
    evictions: Counter[str] = field(default_factory=Counter)


class TaintController:
    """Follows the informers from the start, but plans and acts only in `run`, which may be called again after its end.
    The informers must be complete before `run`."""

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
        self._clock = clock
        self._deletions = metrics.counter(
            "device_taint_eviction_controller_pod_deletions_total",
            "Pods that were deleted because of the taint of a device.",
        )
        self._delays = metrics.histogram(
            "device_taint_eviction_controller_pod_deletion_duration_seconds",
            "From the moment a pod had to leave a tainted device to its deletion.",
            _BUCKETS,
        )
        self._is_running = False
        self._work = _Work()
        self._deleter = Deleter(cluster, recorder, clock)
        self._queue = WorkQueue[PodKey](self._evict, clock, workers=settings.workers, backoff=settings.retry)
        self._usage = Usage(informers, workloads=settings.workloads)
        self._taints = DeviceTaints(informers, self._taints_changed)
        self._reporter = RuleReporter(cluster, informers, clock, self._counts, settings.status)
        informers.rules.on_change(self._rule_changed)
        informers.claims.on_change(self._claim_changed)
        informers.pods.on_change(self._pod_changed)

    @property
    def is_idle(self) -> bool:
        """Return True if nothing is being done. Evictions may be planned for later."""
        return self._queue.is_idle and self._reporter.is_idle

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Evict pods until cancelled."""
        try:
            self._is_running = True
            self._check(self._informers.pods.all())
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._reporter.run)
                await tasks.start(self._queue.run)
                task_status.started()
        finally:
            self._is_running = False
            self._work = _Work()

    def _taints_changed(self, selector: DeviceTaintSelector) -> None:
        if self._is_running:
            self._check(self._usage.users(selector))

    def _rule_changed(self, change: Changed[DeviceTaintRule]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            del self._work.evictions[old.metadata.name]

    def _claim_changed(self, change: Changed[ResourceClaim]) -> None:
        if self._is_running and _relevant_of_claim(change.old) != _relevant_of_claim(change.new):
            self._check(self._usage.users_of(change.key))

    def _pod_changed(self, change: Changed[Pod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            self._drop(_key(old))
            self._work.evicted.discard(_key(old))
        if self._is_running and new is not None and (old is None or _relevant_of_pod(old) != _relevant_of_pod(new)):
            self._check([new])

    def _check(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            key = _key(pod)
            planned = self._usage.eviction(pod, self._taints.of) if key not in self._work.evicted else None
            if planned is not None:
                self._plan(key, planned)
            elif self._drop(key) and not pod.metadata.is_deleting:
                self._deleter.cancel(key)

    def _plan(self, key: PodKey, eviction: Eviction) -> None:
        if self._work.planned.get(key) != eviction:
            self._drop(key)
            self._work.planned[key] = eviction
            self._queue.add_after(key, self._wait(eviction))
            self._reporter.later(eviction.rules)

    def _drop(self, key: PodKey) -> bool:
        """Drop the plan for a pod. Return True if there was one."""
        if (dropped := self._work.planned.pop(key, None)) is None:
            return False
        self._queue.forget(key)
        self._reporter.later(dropped.rules)
        return True

    def _wait(self, eviction: Eviction) -> float:
        return (eviction.when - self._clock.now()).total_seconds()

    async def _evict(self, key: PodKey) -> None:
        if (planned := self._work.planned.get(key)) is None:
            return
        if (wait := self._wait(planned)) > 0:
            return self._queue.add_after(key, wait)
        if await self._deleter.delete(key, lambda: self._work.planned.get(key) is planned):
            self._note(key, planned)
            self._drop(key)
        elif self._work.planned.get(key) is planned:  # the pod is gone or being deleted; the informer will see that
            self._drop(key)

    def _note(self, key: PodKey, planned: Eviction) -> None:
        delay = -self._wait(planned)
        log.info("pod evicted", extra=facts(pod=str(key), because=str(planned), delay=delay))
        self._deletions.add()
        self._delays.observe(delay)
        self._work.evictions.update(rule for rule in planned.rules if self._informers.rules.get(rule) is not None)
        present = self._informers.pods.get(key.name, key.namespace)
        if present is not None and present.uid == key.uid:
            self._work.evicted.add(key)

    def _counts(self, rule: DeviceTaintRule) -> Counts:
        name = rule.metadata.name
        if rule.spec.taint.effect == NO_EFFECT:
            return replace(self._usage.dry_run(rule, self._taints), evicted=self._work.evictions[name])
        namespaces = [key.namespace for key, planned in self._work.planned.items() if name in planned.rules]
        return Counts(namespaces, evicted=self._work.evictions[name])


def _key(pod: Pod) -> PodKey:
    return PodKey(pod.metadata.namespace, pod.name, pod.uid)


def _relevant_of_claim(claim: ResourceClaim | None) -> object:
    """Return what matters of a claim here."""
    return claim and (claim.uid, claim.results, claim.status.reserved_for)


def _relevant_of_pod(pod: Pod) -> object:
    """Return what matters of a pod here."""
    made, extended = pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status
    return pod.uid, pod.spec.node_name, made, extended, pod.metadata.is_deleting, pod.is_finished
