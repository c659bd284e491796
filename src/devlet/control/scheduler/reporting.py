"""Report why pods wait: the condition PodScheduled and the event FailedScheduling, whenever the reason is new.

Finding a reason may take longer than an attempt. So it is done in a thread, when no attempt is due, and once for all
changes until then.
"""

import logging
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster, StrategicMergePatch
from devlet.cluster.events import WARNING, Recorder
from devlet.control.scheduler.pending import PendingPod, PendingPods
from devlet.errors import DevletError, NotFound
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import format_time

__all__ = ["FAILED", "UNSCHEDULABLE", "Reporter"]

log = logging.getLogger(__name__)

FAILED = "FailedScheduling"
UNSCHEDULABLE = "Unschedulable"
SCHEDULED = "PodScheduled"


class Reporter:
    """`explain` returns why a pod waits; empty if it does not."""

    def __init__(
        self,
        cluster: Cluster,
        recorder: Recorder,
        clock: Clock,
        pending: PendingPods,
        explain: Callable[[PendingPod], Awaitable[str]],
    ) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._clock = clock
        self._pending = pending
        self._explain = explain

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            if (due := self._pending.next_report()) is None:
                await self._pending.reports.until_due()
                continue
            try:
                await self._report(due)
            except Exception as e:  # a reason that cannot be computed must not end the scheduler
                log.error("reason not found", exc_info=e, extra=facts(podUID=due.pod.uid))

    async def _report(self, record: PendingPod) -> None:
        if not self._pending.is_waiting(record):
            return
        reason = await self._explain(record)
        pod = record.pod
        reported = record.reported if record.reported is not None else _reported_before(pod)
        if not self._pending.is_waiting(record) or not reason or reason == reported:
            return
        record.reported = reason
        self._recorder.record(pod.reference, WARNING, FAILED, reason)
        try:
            await self._write(pod, reason)
        except NotFound:
            record.reported = None
        except DevletError as e:
            log.warning("reason not written", extra=facts(pod=f"{pod.metadata.namespace}/{pod.name}", err=e))
            record.reported = ""  # so that the same reason is written later
            self._pending.reports.ask(record)

    async def _write(self, pod: Pod, reason: str) -> None:
        if pod.spec.node_name:  # another scheduler has placed the pod; only its claims wait
            return
        known = next((each for each in pod.status.conditions if each.type == SCHEDULED), None)
        since = known.last_transition_time if known and known.status == "False" else None
        condition: Document = {
            "type": SCHEDULED,
            "status": "False",
            "reason": UNSCHEDULABLE,
            "message": reason,
            "lastProbeTime": None,
            "lastTransitionTime": since or format_time(self._clock.now()),
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        patch = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        await self._cluster.patch(
            PODS, pod.name, StrategicMergePatch(patch), pod.metadata.namespace, subresource="status"
        )


def _reported_before(pod: Pod) -> str:
    """Return the reason that the pod's condition has, from an earlier run of a scheduler."""
    for condition in pod.status.conditions:
        if condition.type == SCHEDULED and condition.status == "False" and condition.reason == UNSCHEDULABLE:
            return condition.message
    return ""
