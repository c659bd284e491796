"""Carries out the life of one pod, which `life` describes as a table.

Each pod has a worker, and a worker does one thing at a time. It observes its pod, looks up the step, performs the acts
of the step, and repeats this until a step rests. It continues when the pod changes (`update`, `poke`) or at the time
that the observation set.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from devlet.cluster.events import NORMAL
from devlet.errors import DevletError
from devlet.kit import request_ids
from devlet.kit.chance import random
from devlet.kit.changes import Changes
from devlet.kit.facts import bound, facts
from devlet.kit.parts import first
from devlet.node.pods import container_plan
from devlet.node.pods.admitting import PodAdmission
from devlet.node.pods.api_object import PodObject
from devlet.node.pods.attempts import Attempts
from devlet.node.pods.claims import PodClaims
from devlet.node.pods.container_plan import Plan, Runs
from devlet.node.pods.containers import PodContainers
from devlet.node.pods.life import LIVE, TABLE, Act, Facts, Observation, State, observe
from devlet.node.pods.parts import Parts
from devlet.node.pods.status_writer import LATE, StatusWriter
from devlet.objects.documents import Document
from devlet.objects.identifiers import ResourceName
from devlet.objects.types.pod import Pod

__all__ = ["PodWorker"]

log = logging.getLogger(__name__)


class _Seen(Struct, frozen=True):
    """What one look at the pod found. `wake` is when to look again, if the worker rests after it."""

    facts: Facts
    runs: Runs = {}
    plan: Plan = Plan()
    missing: tuple[ResourceName, ...] = ()
    wake: datetime | None = None


class _Goal(Struct, frozen=True):
    """How the goal of a state is getting on, and when the next attempt is due if it has to wait."""

    progress: Observation
    missing: tuple[ResourceName, ...] = ()
    due: datetime | None = None


_NOTHING = _Seen(Facts(Observation.DUE))
_DUE, _DONE = _Goal(Observation.DUE), _Goal(Observation.DONE)


@dataclass(slots=True)
class _End:
    """How the end of a pod is getting on. `cause` is the observation that led to it. `plan` is for a pod that
    completed: it says how."""

    stopping: Attempts
    cause: Observation = Observation.TERMINATING
    plan: Plan = field(default=Plan())
    was_stopped: bool = False  # the runtime has been asked at least once
    is_released: bool = False
    is_deleted: bool = False
    is_outdated: bool = False  # the status does not have the latest health of the devices


class PodWorker:
    """`is_running` is True while a task awaits `run`."""

    __slots__ = (
        "_admission",
        "_changes",
        "_claims",
        "_containers",
        "_end",
        "_object",
        "_parts",
        "_seen",
        "_status",
        "is_running",
        "state",
    )

    def __init__(self, subject: PodObject, parts: Parts) -> None:
        self._object = subject
        self._parts = parts
        self.state = State.NEW
        self.is_running = False
        self._changes = Changes()
        self._admission = PodAdmission(subject, parts)
        self._claims = PodClaims(subject, parts)
        self._containers = PodContainers(subject, parts)
        self._status = StatusWriter(subject, parts)
        self._end = _End(Attempts(parts.clock, parts.settings.retry, parts.settings.soonest))
        self._seen = _NOTHING

    @property
    def pod(self) -> Pod:
        return self._object.pod

    @property
    def is_gone(self) -> bool:
        return self._object.is_gone

    @property
    def is_active(self) -> bool:
        """The pod may hold devices, and its containers run or may yet run."""
        in_use = self.state in LIVE or self.state is State.STOPPING
        return in_use and not self._object.is_gone and not self.pod.is_finished

    @property
    def _must_stop(self) -> bool:
        return self._object.is_gone or self.pod.metadata.is_deleting or self.pod.is_finished

    @property
    def awaits_claims(self) -> bool:
        """The pod runs, but it is not known with which claims: the checkpoint may have been lost, or be wrong."""
        return self.is_active and not self._claims.is_prepared and self.pod.status.phase == "Running"

    @property
    def has_work(self) -> bool:
        if self.state is not State.ENDED:
            return True
        if self._object.is_gone:
            return False
        return self._end.is_outdated or (self.pod.metadata.is_deleting and not self._end.is_deleted)

    def update(self, document: Document | None) -> None:
        """Take note that the pod changed, or with None that it is gone from the cluster."""
        if document is None:
            self._object.is_gone = True
        else:
            self._object.see(document)
        if self._must_stop:
            self._admission.cancel()  # a plugin or driver may take its time, and its answer no longer matters
            self._claims.cancel()
        self.poke()

    def devices_changed(self) -> None:
        """Retry what may have failed because a device plugin was missing."""
        if self._containers.retry() or self.state is State.NEW or self._admission.awaited:
            self.poke()

    def claims_changed(self) -> None:
        """Retry what may have failed because of a driver or a claim."""
        if self._claims.hurry() or self._containers.retry():
            self.poke()

    def health_changed(self) -> None:
        """Write the health of the pod's devices again. If the pod has ended, it may explain why."""
        self._end.is_outdated = self.state not in LIVE  # the last status may have been worked out already
        self.poke()

    def poke(self) -> None:
        """Look again: something that concerns the pod changed."""
        self._changes.notify()

    async def run(self) -> None:
        """Return when nothing is left to do for the pod."""
        failures = 0
        metadata = self.pod.metadata
        with bound(pod=f"{metadata.namespace}/{metadata.name}", podUID=metadata.uid):
            while self.has_work:
                version = self._changes.version
                try:
                    with request_ids.request():
                        wake = await self._advance()
                    failures = 0
                except Exception as e:
                    wake = self._failed(e, failures)
                    failures += 1
                if self.has_work:
                    await self._rest(version, wake)

    def _failed(self, error: Exception, failures: int) -> datetime:
        """Return when to try again. Whatever the error is, other pods are not affected."""
        delay = self._parts.settings.retry.delay(failures, random.random)
        if isinstance(error, DevletError):
            log.warning("pod not settled", extra=facts(err=error, delay=delay))
        else:
            log.error("pod worker failed", exc_info=error, extra=facts(delay=delay))
        return self._parts.clock.now() + timedelta(seconds=delay)

    async def _rest(self, version: int, wake: datetime | None) -> None:
        """Wait for a change after this version, or until it is time."""
        changed = partial(self._changes.after, version)
        if wake is None:
            await changed()
        elif self._changes.version <= version:
            clock = self._parts.clock
            await first(changed, partial(clock.sleep, (wake - clock.now()).total_seconds()))

    async def _advance(self) -> datetime | None:
        """Take steps until one of them rests. Return when to look again if nothing happens before."""
        while True:
            self._seen = await self._look()
            observation = observe(self.state, self._seen.facts)
            step = TABLE[self.state][observation]
            for act in step.acts:
                if act is Act.REST:
                    return self._seen.wake
                await PERFORM[act](self)
            if step.next is State.STOPPING and self.state in LIVE:
                self._end.cause = observation
            self.state = step.next

    # Observation

    async def _look(self) -> _Seen:
        runs: Runs = {}
        plan = Plan()
        if self.state in LIVE or self.state is State.STOPPING:
            runs = await self._parts.runtime.runs(self.pod)
        if self.state in LIVE and not self._must_stop:
            plan = self._containers.plan(runs)
        is_running = any(run.is_running for run in runs.values())
        is_found = bool(runs) and not any(run.exit is not None and run.exit.is_lost for run in runs.values())
        deadline = container_plan.deadline(self.pod) if self.state in LIVE else None
        goal = self._goal(runs, plan, is_running=is_running, is_found=is_found)
        seen = Facts(
            goal.progress,
            is_gone=self._object.is_gone,
            is_finished=self.pod.is_finished,
            is_deleting=self.pod.metadata.is_deleting and not self._end.is_deleted,
            is_running=is_running,
            is_rejected=self._admission.rejection is not None,
            is_found=is_found,
            is_expired=deadline is not None and deadline <= self._parts.clock.now(),
            is_complete=plan.outcome is not None,
        )
        wake = min((each for each in (goal.due, plan.wake, deadline) if each is not None), default=None)
        return _Seen(seen, runs, plan, goal.missing, wake)

    def _goal(self, runs: Runs, plan: Plan, *, is_running: bool, is_found: bool) -> _Goal:
        match self.state:
            case State.NEW:
                if self._admission.is_admitted:
                    return _DONE
                return _DUE if is_found or self._must_stop else self._plugins()
            case State.ADMITTED:
                return _Goal(self._claims.preparation(runs), due=self._claims.preparation_due)
            case State.PREPARED:
                return self._plugins() if plan.start else _DONE
            case State.STOPPING:
                stopping = self._end.stopping
                if self._end.was_stopped and not is_running:
                    return _DONE
                return _DUE if stopping.is_due() else _Goal(Observation.WAITING, due=stopping.due)
            case State.STOPPED:
                return _Goal(self._claims.unpreparation, due=self._claims.unpreparation_due)
            case State.UNPREPARED:
                return _DONE if self._end.is_released else _DUE
            case State.ENDED:
                return _DUE if self._end.is_outdated else _DONE

    def _plugins(self) -> _Goal:
        """Return whether the device plugins are here that the pod needs next."""
        if missing := self._admission.missing():
            again = self._parts.clock.now() + timedelta(seconds=self._parts.settings.look_again)
            return _Goal(Observation.WAITING, missing, again)
        return _DUE

    # Acts: before the end

    async def _adopt(self) -> None:
        self._admission.adopt(len(self._seen.runs))

    async def _admit(self) -> None:
        await self._admission.admit()

    async def _reject(self) -> None:
        self._admission.reject()

    async def _prepare(self) -> None:
        await self._claims.prepare(self._while_preparing)

    async def _while_preparing(self) -> None:
        """Say so in the status if preparing takes its time. Return when the pod's deadline has passed."""
        clock, settings = self._parts.clock, self._parts.settings
        await clock.sleep(settings.preparing)
        for delay in settings.retry.delays(random.random):
            try:
                await self._write(self._claims.hold_back(self._seen.plan))
                break
            except DevletError as e:
                log.warning("pod status not written", extra=facts(err=e, delay=delay))
            await clock.sleep(delay)
        while (deadline := container_plan.deadline(self.pod)) is None or deadline > clock.now():
            await self._rest(self._changes.version, deadline)  # it may be changed meanwhile

    async def _start(self) -> None:
        self._admission.awaited = ()
        await self._containers.start(self._seen.plan, self._seen.runs)

    async def _show_plugins(self) -> None:
        why = self._admission.wait_for(self._seen.missing)
        await self._write(Plan(waiting={container.name: why for container in self.pod.containers}))

    async def _show(self) -> None:
        plan = self._seen.plan
        self._containers.report_crashes(plan)
        await self._write(plan if self._claims.is_prepared else self._claims.hold_back(plan))

    async def _write(self, plan: Plan) -> None:
        admitted, prepared = self.state is not State.NEW, self._claims.is_prepared
        previous = self._containers.previous
        await self._status.show(plan, self._seen.runs, previous, admitted=admitted, prepared=prepared)

    # Acts: the end

    async def _expire(self) -> None:
        self._object.record(NORMAL, LATE.reason, LATE.message)

    async def _complete(self) -> None:
        self._end.plan = self._seen.plan

    async def _stop(self) -> None:
        end = self._end
        end.stopping.begin()
        await self._parts.runtime.stop(self.pod)
        end.stopping.failed()  # the next look shows whether containers still run
        if end.cause is not Observation.COMPLETED and not end.was_stopped:
            for name in (name for name, run in self._seen.runs.items() if run.is_running):
                self._object.record(NORMAL, "Killing", f"Stopping container {name}", name)
        end.was_stopped = True

    async def _sum_up(self) -> None:
        outcome = self._status.sum_up(
            self._end.cause,
            self._end.plan,
            self._seen.runs,
            self._containers.previous,
            prepared=self._claims.is_prepared,
            rejection=self._admission.rejection,
        )
        if self._end.cause is not Observation.FINISHED:  # it had ended before
            log.info("pod ended", extra=facts(phase=outcome, cause=self._end.cause.value))

    async def _unprepare(self) -> None:
        await self._claims.unprepare()

    async def _show_stopped(self) -> None:
        await self._status.show_stopped()

    async def _release(self) -> None:
        await self._parts.devices.release(self.pod.uid)
        self._parts.admission.forget(self.pod.uid)
        self._end.is_released = True

    async def _publish(self) -> None:
        await self._status.publish()

    async def _forget(self) -> None:
        await self._parts.runtime.forget(self.pod.uid)

    async def _delete(self) -> None:
        await self._object.delete()
        self._end.is_deleted = True

    async def _show_health(self) -> None:
        self._end.is_outdated = False  # first: a change during the write is written next
        try:
            await self._status.show_health()
        except BaseException:
            self._end.is_outdated = True
            raise


PERFORM: Mapping[Act, Callable[[PodWorker], Awaitable[None]]] = {
    Act.ADOPT: PodWorker._adopt,
    Act.ADMIT: PodWorker._admit,
    Act.REJECT: PodWorker._reject,
    Act.PREPARE: PodWorker._prepare,
    Act.START: PodWorker._start,
    Act.SHOW_PLUGINS: PodWorker._show_plugins,
    Act.SHOW: PodWorker._show,
    Act.EXPIRE: PodWorker._expire,
    Act.COMPLETE: PodWorker._complete,
    Act.STOP: PodWorker._stop,
    Act.SUM_UP: PodWorker._sum_up,
    Act.UNPREPARE: PodWorker._unprepare,
    Act.SHOW_STOPPED: PodWorker._show_stopped,
    Act.RELEASE: PodWorker._release,
    Act.PUBLISH: PodWorker._publish,
    Act.FORGET: PodWorker._forget,
    Act.DELETE: PodWorker._delete,
    Act.SHOW_HEALTH: PodWorker._show_health,
}
"""How each act is performed, except for `REST`, which ends a look."""
