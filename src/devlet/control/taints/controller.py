"""Pods leave devices with a NoExecute taint, at the time that their claims' tolerations allow.

Listeners decide, queues act: whatever changes, the pods that it concerns are looked at again at once, and what is to be
done with them is in `_planned` until it is done. Nothing is remembered that cannot be computed anew from the cluster's
objects, so a controller that takes over comes to the same plan. As in the reference, no disruption budget is asked.
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


class TaintController:
    """Follows the informers from the start; plans and acts only in `run`, which may be called again after its end.
    The informers have to be complete by then."""

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
        self._planned: dict[PodKey, Eviction] = {}
        self._evicted: set[PodKey] = set()  # deleted, but the informer does not know it yet
        self._numbers: Counter[str] = Counter()  # pods evicted because of a rule, by its name
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
        """Nothing is done now; something may be planned for later."""
        return self._queue.is_idle and self._reporter.is_idle

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled."""
        try:
            self._is_running = True
            self._look_at(self._informers.pods.all())
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._reporter.run)
                await tasks.start(self._queue.run)
                task_status.started()
        finally:
            self._is_running = False
            self._planned.clear()
            self._evicted.clear()
            self._numbers.clear()

    def _taints_changed(self, selector: DeviceTaintSelector) -> None:
        if self._is_running:
            self._look_at(self._usage.users(selector))

    def _rule_changed(self, change: Changed[DeviceTaintRule]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            del self._numbers[old.metadata.name]

    def _claim_changed(self, change: Changed[ResourceClaim]) -> None:
        if self._is_running and _held(change.old) != _held(change.new):
            self._look_at(self._usage.users_of(change.key))

    def _pod_changed(self, change: Changed[Pod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            self._drop(_key(old))
            self._evicted.discard(_key(old))
        if self._is_running and new is not None and (old is None or _standing(old) != _standing(new)):
            self._look_at([new])

    def _look_at(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            key = _key(pod)
            planned = self._usage.eviction(pod, self._taints.of) if key not in self._evicted else None
            if planned is not None:
                self._plan(key, planned)
            elif self._drop(key) and not pod.metadata.is_deleting:
                self._deleter.cancel(key)

    def _plan(self, key: PodKey, eviction: Eviction) -> None:
        if self._planned.get(key) != eviction:
            self._drop(key)
            self._planned[key] = eviction
            self._queue.add_after(key, self._wait(eviction))
            self._reporter.later(eviction.rules)

    def _drop(self, key: PodKey) -> bool:
        """Whether there was a plan."""
        if (dropped := self._planned.pop(key, None)) is None:
            return False
        self._queue.forget(key)
        self._reporter.later(dropped.rules)
        return True

    def _wait(self, eviction: Eviction) -> float:
        return (eviction.when - self._clock.now()).total_seconds()

    async def _evict(self, key: PodKey) -> None:
        if (planned := self._planned.get(key)) is None:
            return
        if (wait := self._wait(planned)) > 0:
            return self._queue.add_after(key, wait)
        if await self._deleter.delete(key, lambda: self._planned.get(key) is planned):
            self._note(key, planned)
            self._drop(key)
        elif self._planned.get(key) is planned:  # the pod is gone, or about to be: the informer will tell
            self._drop(key)

    def _note(self, key: PodKey, planned: Eviction) -> None:
        delay = -self._wait(planned)
        log.info("pod evicted", extra=facts(pod=str(key), because=str(planned), delay=delay))
        self._deletions.add()
        self._delays.observe(delay)
        self._numbers.update(rule for rule in planned.rules if self._informers.rules.get(rule) is not None)
        present = self._informers.pods.get(key.name, key.namespace)
        if present is not None and present.uid == key.uid:
            self._evicted.add(key)

    def _counts(self, rule: DeviceTaintRule) -> Counts:
        name = rule.metadata.name
        if rule.spec.taint.effect == NO_EFFECT:
            return replace(self._usage.dry_run(rule, self._taints), evicted=self._numbers[name])
        namespaces = [key.namespace for key, planned in self._planned.items() if name in planned.rules]
        return Counts(namespaces, evicted=self._numbers[name])


def _key(pod: Pod) -> PodKey:
    return PodKey(pod.metadata.namespace, pod.name, pod.uid)


def _held(claim: ResourceClaim | None) -> object:
    """What matters of a claim."""
    return claim and (claim.uid, claim.results, claim.status.reserved_for)


def _standing(pod: Pod) -> object:
    """What matters of a pod."""
    made, extended = pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status
    return pod.uid, pod.spec.node_name, made, extended, pod.metadata.is_deleting, pod.is_finished
