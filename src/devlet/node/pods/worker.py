"""One pod on this node, from its admission to its end. Each pod has a worker, and a worker does one thing at a time.

    NEW ──admitted, or found running──▶ ADMITTED ──over, deleted, gone──▶ ENDING ──devices released──▶ ENDED
     │                                  claims are prepared                 ▲   claims are unprepared
     └───────────────────────────── rejected, finished, gone ───────────────┘

A worker looks at its pod when something happened to it (`update`, `poke`) or when its time has come, and does what is
next. Each look may fail and is repeated then, so every step must bear being done twice. Claims are unprepared and
devices released before the cluster hears that the pod is over: whoever is scheduled in its place finds them free.
"""

import logging
from datetime import datetime, timedelta
from enum import Enum
from functools import partial

import anyio
from msgspec.structs import replace

from devlet.cluster.events import NORMAL, WARNING
from devlet.errors import DevletError, NotCreated, Unavailable
from devlet.kit import request_ids
from devlet.kit.chance import random
from devlet.kit.facts import bound, facts
from devlet.node.pods import lifecycle, status
from devlet.node.pods.api_object import PodObject
from devlet.node.pods.attempts import Attempts
from devlet.node.pods.container_config import config
from devlet.node.pods.lifecycle import CRASHING, CREATING, History, Plan, Start
from devlet.node.pods.parts import Parts
from devlet.node.rejection import Rejection
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName, ResourceName
from devlet.objects.types.container import ContainerStateWaiting
from devlet.objects.types.pod import Pod
from devlet.runtime.containers import Run

__all__ = ["AWAITS_PLUGIN", "PodWorker", "Stage"]

log = logging.getLogger(__name__)

AWAITS_PLUGIN = "WaitingForDevicePlugin"
NOT_STARTED = "CreateContainerConfigError"
NOT_CREATED = "CreateContainerError"
NOT_PREPARED = "FailedPrepareDynamicResources"
NOT_UNPREPARED = "FailedUnprepareDynamicResources"
LATE = Rejection("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_SOON = timedelta(seconds=1)  # not to be tried again for every change, where there are many


class Stage(Enum):
    NEW = "new"
    ADMITTED = "admitted"
    ENDING = "ending"
    ENDED = "ended"


class PodWorker:
    def __init__(self, subject: PodObject, parts: Parts) -> None:
        self._parts = parts
        self._object = subject
        self.stage = Stage.NEW
        self.is_running = False  # whether somebody runs `run`
        self._histories: dict[ContainerName, History] = {}
        self._previous: dict[ContainerName, Run] = {}
        self._told: dict[ContainerName, ContainerStateWaiting] = {}
        self._awaited: tuple[ResourceName, ...] = ()
        self._final: Document | None = None
        self._deleted = False
        self._is_outdated = False  # what its status says of its devices
        self._admitting = anyio.CancelScope()
        self._wake = anyio.Event()
        settings = parts.settings
        self._prepared = False
        self._preparing = Attempts(parts.clock, settings.prepare, settings.soonest)
        self._unpreparing = Attempts(parts.clock, settings.unprepare, settings.soonest)
        self._claims_before: object = None  # of the pod, when they were to be prepared last
        self._not_prepared = ContainerStateWaiting(reason=CREATING)
        self._known: status.Facts | None = None  # what the newest status says

    @property
    def pod(self) -> Pod:
        return self._object.pod

    @property
    def is_gone(self) -> bool:
        return self._object.is_gone

    @property
    def is_active(self) -> bool:
        """It may hold devices, and its containers run or may yet run."""
        return self.stage in (Stage.NEW, Stage.ADMITTED) and not self._object.is_gone and not self.pod.is_finished

    @property
    def awaits_claims(self) -> bool:
        """It runs, but it is not known yet with which claims: the file may have been lost, or be wrong."""
        return self.is_active and not self._prepared and self.pod.status.phase == "Running"

    @property
    def has_work(self) -> bool:
        if self.stage is not Stage.ENDED:
            return True
        if self._object.is_gone:
            return False
        return self._is_outdated or (self.pod.metadata.is_deleting and not self._deleted)

    def update(self, document: Document | None) -> None:
        """The pod changed; None: it is gone from the cluster."""
        if document is None:
            self._object.is_gone = True
        else:
            self._object.see(document)
        if self._must_stop():
            self._admitting.cancel()  # a plugin may take its time; nobody waits for its answer any more
        self.poke()

    def devices_changed(self) -> None:
        """A plugin that the pod waits for, or without which a container could not start, may be back."""
        if self._retry_starts() or self.stage is Stage.NEW or self._awaited:
            self.poke()

    def _retry_starts(self) -> bool:
        """Of containers that could not be started. Whether there are any."""
        now = self._parts.clock.now()
        failed = {name: each for name, each in self._histories.items() if each.failed_at is not None}
        due = {name: each for name, each in failed.items() if each.failed_at and now - each.failed_at >= _SOON}
        for name, history in due.items():
            self._histories[name] = lifecycle.to_be_tried(history)
        return bool(due)

    def claims_changed(self) -> None:
        """A driver, or a claim, that the pod's start or end waits for may be there."""
        if self._preparing.hurry() or self._unpreparing.hurry() or self._retry_starts():
            self.poke()

    def health_changed(self) -> None:
        """Of its devices. After its end it may say why it ended."""
        self._is_outdated = self.stage is Stage.ENDED
        self.poke()

    def poke(self) -> None:
        """Something that concerns the pod changed."""
        self._wake.set()

    async def run(self) -> None:
        """Until nothing is left to do for the pod."""
        failures = 0
        metadata = self.pod.metadata
        with bound(pod=f"{metadata.namespace}/{metadata.name}", podUID=metadata.uid):
            while self.has_work:
                self._wake = anyio.Event()
                try:
                    with request_ids.request():
                        wake = await self._look()
                    failures = 0
                except Exception as e:
                    wake = self._failed(e, failures)
                    failures += 1
                if self.has_work:
                    await self._rest(wake)

    def _failed(self, error: Exception, failures: int) -> datetime:
        """When to try again. Whatever it was, the other pods go on."""
        delay = self._parts.settings.retry.delay(failures, random.random)
        if isinstance(error, DevletError):
            log.warning("pod not settled", extra=facts(err=error, delay=delay))
        else:
            log.error("pod worker failed", exc_info=error, extra=facts(delay=delay))
        return self._parts.clock.now() + timedelta(seconds=delay)

    async def _rest(self, wake: datetime | None) -> None:
        """Until something happens, or it is time."""
        clock = self._parts.clock
        async with anyio.create_task_group() as tasks:

            async def alarm(at: datetime) -> None:
                await clock.sleep((at - clock.now()).total_seconds())
                tasks.cancel_scope.cancel()

            if wake is not None:
                tasks.start_soon(alarm, wake)
            await self._wake.wait()
            tasks.cancel_scope.cancel()

    async def _look(self) -> datetime | None:
        """Do what is next. When to look again, if nothing happens before."""
        wake = None
        if self._is_late():
            await self._expire()
        if self.stage is Stage.NEW:
            wake = await self._begin()
        if self.stage is Stage.ADMITTED:
            wake = await self._advance()
        if self.stage is Stage.ENDING:
            wake = await self._end()
        if self.stage is Stage.ENDED and self.has_work:
            await self._close()
        return self._not_too_late(wake)

    def _is_late(self) -> bool:
        """For its activeDeadlineSeconds."""
        at = lifecycle.deadline(self.pod)
        return at is not None and self.is_active and not self._must_stop() and at <= self._parts.clock.now()

    def _not_too_late(self, wake: datetime | None) -> datetime | None:
        at = lifecycle.deadline(self.pod) if self.is_active else None
        return min((each for each in (wake, at) if each is not None), default=None)

    async def _close(self) -> None:
        """What is left to do for a pod that has ended."""
        if self.pod.metadata.is_deleting:
            await self._object.delete()
            self._deleted = True
        else:
            self._is_outdated = False  # before the look: what changes after it is written, too
            health = partial(self._parts.claim_health, self.pod)
            await self._object.write_status(status.with_health(self.pod, health, self._object.document))

    # Admission

    async def _begin(self) -> datetime | None:
        parts, pod = self._parts, self.pod
        runs = await parts.runtime.runs(pod)
        is_over = self._object.is_gone or pod.is_finished
        if any(run.is_running for run in runs.values()) if is_over else pod.metadata.is_deleting:
            await self._stop()
            return None
        if is_over:
            self.stage = Stage.ENDING
            return None
        lost = any(run.exit is not None and run.exit.is_lost for run in runs.values())
        if (runs and not lost) or self._plan(runs).outcome is not None:
            parts.admission.adopt(pod)
            self.stage = Stage.ADMITTED
            log.info("pod taken over", extra=facts(containers=len(runs)))
            return None
        if awaited := self._awaited_resources():
            return await self._await_plugins(awaited, runs, admitted=False)
        self._awaited = ()
        await self._admit()
        return None

    def _awaited_resources(self) -> tuple[ResourceName, ...]:
        """Nobody has looked for a node that has what a static pod asks for: it is for this one, and may yet come."""
        parts, pod = self._parts, self.pod
        unknown = parts.admission.unknown(pod) if self._object.is_static else ()
        return tuple(dict.fromkeys((*parts.devices.pending_resources(pod), *unknown)))

    async def _await_plugins(
        self, awaited: tuple[ResourceName, ...], runs: lifecycle.Runs, *, admitted: bool
    ) -> datetime:
        """They were here before the restart and are expected back; the device manager says for how long. A static pod
        waits also for those that were never here."""
        message = f"waiting for the device plugins of {', '.join(awaited)}, which have not listed their devices yet"
        if awaited != self._awaited:
            self._awaited = awaited
            self._object.tell(WARNING, AWAITS_PLUGIN, message)
            log.info("pod waits for device plugins", extra=facts(resourceName=",".join(awaited)))
        why = ContainerStateWaiting(reason=AWAITS_PLUGIN, message=message)
        waiting = {container.name: why for container in self.pod.containers}
        await self._write(Plan(waiting=waiting), runs, admitted=admitted)
        return self._parts.clock.now() + timedelta(seconds=self._parts.settings.look_again)

    async def _admit(self) -> None:
        parts, pod = self._parts, self.pod
        self._admitting = anyio.CancelScope()
        try:
            with self._admitting:
                async with parts.limiter:
                    rejection = await parts.admission.admit(pod, static=self._object.is_static)
        except Unavailable as e:
            self._object.tell(WARNING, "FailedAdmission", f"not admitted yet: {e}")
            raise
        if self._admitting.cancelled_caught:
            self.poke()
        elif rejection is None:
            self.stage = Stage.ADMITTED
            log.info("pod admitted")
        else:
            await self._reject(rejection)

    async def _reject(self, rejection: Rejection) -> None:
        log.info("pod rejected", extra=facts(reason=rejection.reason, message=rejection.message))
        self._object.tell(WARNING, rejection.reason, rejection.message)
        parts, pod = self._parts, self.pod
        now = parts.clock.now()
        self._final = status.rejected(rejection, self._object.document, now)
        if pod.status.container_statuses:  # it ran before, or was seen to wait
            runs = lifecycle.stopped(pod, await parts.runtime.runs(pod), now)
            self._final = self._status(Plan(outcome="Failed"), runs) | self._final
        self.stage = Stage.ENDING

    # Life

    async def _advance(self) -> datetime | None:
        parts = self._parts
        while not self._must_stop():
            runs = await parts.runtime.runs(self.pod)
            plan = self._plan(runs)
            if plan.outcome is not None:
                await self._conclude(plan)
                return None
            again = await self._prepare(plan, runs)
            if self._must_stop():
                break
            if self._is_late():
                await self._expire()
                return None
            if again is not None or not plan.start:
                self._tell_crashes(plan)
                await self._write(plan if again is None else self._held_up(plan), runs)
                return min((each for each in (plan.wake, again) if each is not None), default=None)
            if awaited := tuple(parts.devices.pending_resources(self.pod)):
                again = await self._await_plugins(awaited, runs, admitted=True)
                return min(again, plan.wake or again)
            self._awaited = ()
            async with parts.limiter:
                for each in plan.start:
                    await self._start(each, runs.get(each.container.name))
        await self._stop()
        return None

    async def _prepare(self, plan: Plan, runs: lifecycle.Runs) -> datetime | None:
        """The pod's claims, before its first container starts. When to try again; None if that is not necessary. What
        runs already had its claims prepared: it is asked for again only if that is no longer known."""
        parts, pod = self._parts, self.pod
        if self._prepared or (_lives(runs) and parts.claims.is_prepared(pod)):
            self._prepared = True
            return None
        claims = (pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status)
        if not self._preparing.is_due() and claims == self._claims_before:
            return self._preparing.due
        self._claims_before = claims
        self._preparing.begin()
        async with anyio.create_task_group() as tasks:
            self._admitting = tasks.cancel_scope
            if pod.spec.resource_claims or pod.status.extended_resource_claim_status:
                tasks.start_soon(self._wait_for_claims, plan, runs)
            try:
                await parts.claims.prepare(pod)
                self._prepared = True
            except DevletError as e:
                return self._failed_to_prepare(e)
            finally:
                tasks.cancel_scope.cancel()
        self._preparing.succeeded()
        return None if self._prepared else parts.clock.now()

    async def _wait_for_claims(self, plan: Plan, runs: lifecycle.Runs) -> None:
        """While they are prepared: the pod says so if that takes its time, and its deadline counts from then on."""
        clock, settings = self._parts.clock, self._parts.settings
        await clock.sleep(settings.preparing)
        for delay in settings.retry.delays(random.random):
            try:
                await self._write(self._held_up(plan), runs)
                break
            except DevletError as e:
                log.warning("pod status not written", extra=facts(err=e, delay=delay))
            await clock.sleep(delay)
        try:
            while not self._is_late():
                self._wake = anyio.Event()  # the deadline may be changed meanwhile
                await self._rest(self._not_too_late(None))
            self._admitting.cancel()
        finally:
            self.poke()  # what woke it here may count afterwards

    def _failed_to_prepare(self, error: DevletError) -> datetime:
        self._not_prepared = ContainerStateWaiting(reason=CREATING, message=str(error))
        self._object.tell(WARNING, NOT_PREPARED, f"Failed to prepare dynamic resources: {error}")
        due = self._preparing.failed()
        log.info("claims not prepared", extra=facts(err=error, again=due))
        return due

    def _held_up(self, plan: Plan) -> Plan:
        """The plan of a pod whose claims are not prepared: nothing starts."""
        held = {each.container.name: self._not_prepared for each in plan.start}
        return replace(plan, start=(), waiting={**plan.waiting, **held})

    def _must_stop(self) -> bool:
        return self._object.is_gone or self.pod.metadata.is_deleting or self.pod.is_finished

    def _plan(self, runs: lifecycle.Runs) -> Plan:
        return lifecycle.plan(self.pod, runs, self._histories, self._parts.clock.now(), self._parts.settings.restarts)

    async def _start(self, start: Start, before: Run | None) -> None:
        parts, container = self._parts, start.container
        history = self._histories.get(container.name, History())
        try:
            claimed = parts.claims.cdi_devices(self.pod, container)
            options = await parts.devices.start(self.pod, container)
            await parts.runtime.start(self.pod, container, start.number, config(options, claimed))
        except DevletError as e:
            reason = NOT_CREATED if isinstance(e, NotCreated) else NOT_STARTED
            problem = ContainerStateWaiting(reason=reason, message=str(e))
            self._histories[container.name] = lifecycle.failed(history, problem, parts.clock.now())
            self._object.tell(WARNING, "Failed", f"Error: {e}", container.name)
            return
        for conflict in options.conflicts if options else ():
            self._object.tell(WARNING, "DeviceOptionsConflict", conflict, container.name)
        self._histories[container.name] = lifecycle.started(before, history, parts.settings.restarts)
        if before is not None:
            self._previous[container.name] = before
        self._object.tell(NORMAL, "Started", f"Started container {container.name}", container.name)

    def _tell_crashes(self, plan: Plan) -> None:
        """Once per wait."""
        crashing = {name: why for name, why in plan.waiting.items() if why.reason == CRASHING}
        for name in crashing:
            if self._told.get(name) != crashing[name]:
                metadata = self.pod.metadata
                subject = f"{name} in pod {metadata.name}_{metadata.namespace}({metadata.uid})"
                self._object.tell(WARNING, "BackOff", f"Back-off restarting failed container {subject}", name)
        self._told = crashing

    async def _write(self, plan: Plan, runs: lifecycle.Runs, *, admitted: bool = True) -> None:
        await self._object.write_status(self._status(plan, runs, admitted=admitted))

    def _status(self, plan: Plan, runs: lifecycle.Runs, *, admitted: bool = True) -> Document:
        parts, pod = self._parts, self.pod
        self._known = status.Facts(
            admitted,
            runs,
            self._previous,
            plan.waiting,
            plan.outcome,
            lambda container: (*parts.devices.statuses(pod.uid, container.name), *parts.claim_health(pod, container)),
            prepared=self._prepared,
            address=parts.settings.address,
        )
        return status.document(pod, self._known, self._object.document, parts.clock.now())

    # The end

    async def _conclude(self, plan: Plan) -> None:
        """Its own containers have ended; sidecars may still run."""
        runtime = self._parts.runtime
        await runtime.stop(self.pod)
        self._final = self._status(plan, await runtime.runs(self.pod))
        self.stage = Stage.ENDING
        log.info("pod ended", extra=facts(phase=plan.outcome))

    async def _expire(self) -> None:
        self._object.tell(NORMAL, LATE.reason, LATE.message)
        await self._stop("Failed")
        self._final = (self._final or {}) | {"reason": LATE.reason, "message": LATE.message}

    async def _stop(self, outcome: str = "") -> None:
        """It was deleted, or somebody declared it finished, or its time is over."""
        parts, pod = self._parts, self.pod
        running = [name for name, run in (await parts.runtime.runs(pod)).items() if run.is_running]
        await parts.runtime.stop(pod)
        for name in running:
            self._object.tell(NORMAL, "Killing", f"Stopping container {name}", name)
        runs = lifecycle.stopped(pod, await parts.runtime.runs(pod), parts.clock.now())
        outcome = outcome or (pod.status.phase if pod.is_finished else lifecycle.outcome(lifecycle.own(pod), runs))
        self._final = self._status(Plan(outcome=outcome), runs)
        self.stage = Stage.ENDING
        log.info("pod stopped", extra=facts(phase=outcome))

    async def _end(self) -> datetime | None:
        """When to try again, if its claims could not be unprepared."""
        parts, uid = self._parts, self.pod.uid
        if not self._unpreparing.is_due():
            return self._unpreparing.due
        self._unpreparing.begin()
        try:
            await parts.claims.unprepare(uid)
        except DevletError as e:
            self._object.tell(WARNING, NOT_UNPREPARED, f"Failed to unprepare dynamic resources: {e}")
            due = self._unpreparing.failed()
            log.warning("claims not unprepared", extra=facts(err=e, again=due))
            await self._tell_end()
            return due
        self._unpreparing.succeeded()
        await parts.devices.release(uid)
        parts.admission.forget(uid)
        if self._final is not None:
            await self._object.write_status(self._final)
        await parts.runtime.forget(uid)
        self.stage = Stage.ENDED
        return None

    async def _tell_end(self) -> None:
        """Of its containers. The pod keeps its phase: whoever is told that it is over takes its devices for free."""
        if self._known is not None and self._known.outcome is not None:
            known = replace(self._known, is_over=False)
            told = status.document(self.pod, known, self._object.document, self._parts.clock.now())
            await self._object.write_status(told)


def _lives(runs: lifecycle.Runs) -> bool:
    """Whether its containers were started in this boot of the machine."""
    return any(run.exit is None or not run.exit.is_lost for run in runs.values())
