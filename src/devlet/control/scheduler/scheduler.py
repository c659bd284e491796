"""The scheduler: pending pods get a node, and their claims devices.

    watcher ──▶ pending pods ──▶ attempts: decide, search ──▶ binder ──▶ claims reserved, pod bound
                     ▲                │ refused
                     └────────────────┴──▶ reporter: condition and event with the reason

Attempts are made one at a time; many pods are bound at the same time. A decision counts at once, before it is written.
A refused pod is retried when something changes that may help it; nothing is polled.
"""

import logging

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import checkpoint

from devlet.cluster.client import Cluster
from devlet.cluster.events import NORMAL, WARNING, Recorder
from devlet.control.claim_writes import ClaimWriter
from devlet.control.informers import Informers
from devlet.control.scheduler.attempts import Attempts
from devlet.control.scheduler.binding import Binder
from devlet.control.scheduler.binding_conditions import BindingConditions
from devlet.control.scheduler.decision import Refusal
from devlet.control.scheduler.explaining import Explainer
from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.control.scheduler.overlap_check import OverlapCheck
from devlet.control.scheduler.pending import PendingPod, PendingPods
from devlet.control.scheduler.placing import Assignment
from devlet.control.scheduler.queue import Wake
from devlet.control.scheduler.reporting import FAILED, Reporter
from devlet.control.scheduler.settings import Settings
from devlet.control.scheduler.subject import Subject
from devlet.control.scheduler.watcher import Watcher
from devlet.errors import DevletError, InvalidInput, Overlapping
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.metrics import Registry
from devlet.objects.identifiers import NodeName, PodUID
from devlet.objects.types.pod import Pod

__all__ = ["Scheduler", "Settings"]

log = logging.getLogger(__name__)


class Scheduler:
    """The informers must be complete before `run`: otherwise devices could be allocated that are in use."""

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
        self._recorder = recorder
        self._clock = clock
        self._settings = settings
        self._metrics = SchedulerMetrics(metrics)
        self._pending = PendingPods(clock, settings.reports)
        self._state = state = Watcher(informers, clock, settings, self._pending).state
        writer = ClaimWriter(cluster, clock, settings.write_tries, state.claims.read)
        conditions = BindingConditions(state.claims, recorder, self._metrics, clock, settings.binding_timeout)
        overlaps = OverlapCheck(state.claims, state.devices.ledger, self._metrics, settings.own_write)
        self._attempts = Attempts(cluster, state, self._pending, writer, settings)
        self._binder = Binder(cluster, state.claims, writer, conditions, overlaps, self._metrics, clock, settings)
        explainer = Explainer(state, self._pending, clock, settings)
        self._reporter = Reporter(cluster, recorder, clock, self._pending, explainer.reason)
        queue = self._pending.queue
        self._metrics.show_overlaps(lambda: len(state.devices.ledger.all()))
        self._metrics.show_pending(lambda: {"active": queue.ready, "unschedulable": len(queue.waiting)})

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._reporter.run)
            task_status.started()
            while True:
                uid = await self._pending.queue.pop()
                await checkpoint()  # a long queue must not keep other tasks from running
                await self._informers.following(self._settings.outage)
                await self._state.devices.idle()
                await self._attempt(uid, tasks)

    async def _attempt(self, uid: PodUID, tasks: TaskGroup) -> None:
        record = self._pending.get(uid)
        if record is None or record.is_binding:
            return
        began = self._clock.monotonic()
        try:
            found = await self._attempts.run(record)
        except InvalidInput as e:
            found = Refusal(Wake.ANYTHING, str(e))
        except DevletError as e:
            return self._failed(record, e, tasks)
        except Exception as e:  # one pod must not stop the scheduling of all others
            log.error("attempt failed", exc_info=e, extra=facts(pod=_name(record.pod)))
            return self._failed(record, DevletError(f"error in the scheduler: {e!r}"), tasks)
        if isinstance(found, Refusal) and found.overlapping:
            self._metrics.overlapped()
        if self._pending.get(uid) is not record:  # the pod was deleted meanwhile
            return
        if isinstance(found, Refusal):
            self._metrics.attempted("unschedulable", self._clock.monotonic() - began)
            return self._pending.put_off(record, found)
        subject, assignment = found
        self._assume(record, subject, assignment)
        self._metrics.attempted("scheduled", self._clock.monotonic() - began)
        tasks.start_soon(self._bind, record, subject, assignment, tasks)

    def _failed(self, record: PendingPod, error: DevletError, tasks: TaskGroup) -> None:
        """Retry after a delay: the error has nothing to do with nodes or devices."""
        pod = record.pod
        if self._pending.get(pod.uid) is not record:  # the pod was deleted meanwhile
            return
        at_once = record.failures == 0 and isinstance(error, Overlapping)
        delay = 0.0 if at_once else self._settings.retry.delay(record.failures, random.random)
        record.failures += 1
        record.refusal = Refusal(Wake.ITSELF, str(error))
        record.is_backing_off = True
        log.warning("pod not scheduled", extra=facts(pod=_name(pod), err=error, delay=delay))
        self._metrics.attempted("error")
        self._pending.queue.wait(pod.uid, Wake.ITSELF)
        if at_once:  # the pod may no longer wait when the reporter gets to it
            self._recorder.record(pod.reference, WARNING, FAILED, str(error))
        else:
            self._pending.reports.ask(record)
        tasks.start_soon(self._wake_later, record, delay)

    async def _wake_later(self, record: PendingPod, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._pending.end_back_off(record)

    # After the decision

    def _assume(self, record: PendingPod, subject: Subject, assignment: Assignment) -> None:
        """Count the decision as if it were written."""
        nodes = self._state.nodes
        provided = subject.provided_on(entry.view) if (entry := nodes.get(assignment.node)) else frozenset()
        nodes.occupy(subject.pod.uid, assignment.node, subject.needs.without(provided))
        self._pending.start_binding(record)
        for granted in assignment.granted:
            self._state.claims.reserve(granted.key, granted.results)
        self._pending.capacity_taken()

    async def _bind(self, record: PendingPod, subject: Subject, assignment: Assignment, tasks: TaskGroup) -> None:
        try:
            await self._binder.bind(subject, assignment)
        except DevletError as e:
            return self._not_bound(record, e, tasks)
        except Exception as e:  # one pod must not stop the scheduling of all others
            log.error("binding failed", exc_info=e, extra=facts(pod=_name(subject.pod)))
            return self._not_bound(record, DevletError(f"error in the scheduler: {e!r}"), tasks)
        self._bound(record, subject, assignment.node)

    def _not_bound(self, record: PendingPod, error: DevletError, tasks: TaskGroup) -> None:
        """Retry the pod, unless it was deleted or has got a node meanwhile."""
        record.is_binding = False
        pod = record.pod
        if (record.is_gone or not pod.spec.node_name) and self._state.nodes.leave(pod.uid):
            self._pending.queue.changed(Wake.CAPACITY)
        if not record.is_gone and self._state.needs_scheduling(pod):
            self._failed(record, error, tasks)
        else:
            self._pending.forget(pod.uid)

    def _bound(self, record: PendingPod, subject: Subject, node: NodeName) -> None:
        pod = subject.pod
        record.is_binding = False
        self._pending.forget(pod.uid)
        log.debug("pod scheduled", extra=facts(pod=_name(pod), node=node))  # debug: the event says the same
        if not subject.node:
            message = f"Successfully assigned {_name(pod)} to {node}"
            self._recorder.record(pod.reference, NORMAL, "Scheduled", message)


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.name}"
