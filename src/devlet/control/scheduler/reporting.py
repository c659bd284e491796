"""What pods that wait are told: the condition PodScheduled and the event FailedScheduling, when the reason is new.

To find a reason may take longer than to find that there is no place. So it is done when nobody else has a turn, in a
thread, and once for all that has happened until then.
"""

import logging
from collections.abc import Collection
from math import inf
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from devlet.cluster.client import Cluster, StrategicMergePatch
from devlet.cluster.events import WARNING, Recorder
from devlet.errors import DevletError, NotFound
from devlet.kit.clock import Clock, wait
from devlet.kit.facts import facts
from devlet.objects.documents import Document
from devlet.objects.identifiers import PodUID
from devlet.objects.kinds import PODS
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import format_time

__all__ = ["FAILED", "UNSCHEDULABLE", "Reporter"]

log = logging.getLogger(__name__)

FAILED = "FailedScheduling"
UNSCHEDULABLE = "Unschedulable"
SCHEDULED = "PodScheduled"


class Waiting(Protocol):
    """Those who wait, and why."""

    @property
    def waiting_pods(self) -> Collection[PodUID]: ...

    def waiting_pod(self, uid: PodUID) -> Pod | None: ...

    async def reason(self, uid: PodUID) -> str: ...


class Reporter:
    def __init__(self, cluster: Cluster, recorder: Recorder, clock: Clock, waiting: Waiting, again: float) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._clock = clock
        self._waiting = waiting
        self._again = again
        self._due: dict[PodUID, float] = {}
        self._told: dict[PodUID, str] = {}
        self._refresh_at = inf
        self._added = anyio.Event()

    def ask(self, pod: PodUID, after: float = 0.0) -> None:
        """Let it be told why it waits, if it still does after so many seconds. Who was told before has more patience:
        where much happens, reasons change all the time."""
        after = max(after, self._again) if pod in self._told else after
        self._due.setdefault(pod, self._clock.monotonic() + after)
        self._added.set()

    def refresh(self, after: float) -> None:
        """Reasons may have become others, for all who wait: look once, after so many seconds."""
        if self._refresh_at == inf:
            self._refresh_at = self._clock.monotonic() + after
            self._added.set()

    def forget(self, pod: PodUID) -> None:
        self._due.pop(pod, None)
        self._told.pop(pod, None)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            self._added = anyio.Event()
            if not (due := self._next()):
                await self._rest()
            elif self._due.pop(due, None) is not None:
                try:
                    await self._report(due)
                except Exception as e:  # a reason that cannot be found must not end the scheduler
                    log.error("no reason found", exc_info=e, extra=facts(podUID=due))

    def _next(self) -> PodUID | None:
        now = self._clock.monotonic()
        if self._refresh_at <= now:
            self._refresh_at = inf
            for pod in self._waiting.waiting_pods:
                self._due.setdefault(pod, now)
        return next((pod for pod, at in self._due.items() if at <= now), None)

    async def _rest(self) -> None:
        due = min([self._refresh_at, *self._due.values()])
        await wait(self._added, self._clock, due - self._clock.monotonic())

    async def _report(self, uid: PodUID) -> None:
        if self._waiting.waiting_pod(uid) is None:
            return
        reason = await self._waiting.reason(uid)
        pod = self._waiting.waiting_pod(uid)
        if pod is None or not reason or reason == self._told.get(uid, _said(pod)):
            return
        self._told[uid] = reason
        self._recorder.record(pod.reference, WARNING, FAILED, reason)
        try:
            await self._write(pod, reason)
        except NotFound:
            self.forget(uid)
        except DevletError as e:
            log.warning("reason not written", extra=facts(pod=f"{pod.metadata.namespace}/{pod.name}", err=e))
            self._told[uid] = ""
            self.ask(uid, self._again)

    async def _write(self, pod: Pod, reason: str) -> None:
        if pod.spec.node_name:  # somebody has scheduled it; only its claims wait
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


def _said(pod: Pod) -> str:
    """What an earlier scheduler told it."""
    for condition in pod.status.conditions:
        if condition.type == SCHEDULED and condition.status == "False" and condition.reason == UNSCHEDULABLE:
            return condition.message
    return ""
