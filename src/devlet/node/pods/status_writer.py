"""Writes the status of one pod: while it lives, while its end is held up, and when it is over."""

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from devlet.node.pods import container_plan, status
from devlet.node.pods.api_object import PodObject
from devlet.node.pods.container_plan import Plan, Runs
from devlet.node.pods.life import Observation
from devlet.node.pods.parts import Parts
from devlet.node.reports import Rejection
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName
from devlet.objects.types.container import Container, ResourceStatus
from devlet.runtime.containers import Run

__all__ = ["LATE", "StatusWriter"]

LATE = Rejection("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


class StatusWriter:
    __slots__ = ("_known", "_last", "_object", "_parts")

    def __init__(self, subject: PodObject, parts: Parts) -> None:
        self._object = subject
        self._parts = parts
        self._known: status.Facts | None = None  # that the newest status was made of
        self._last: Document | None = None

    async def show(
        self, plan: Plan, runs: Runs, previous: Mapping[ContainerName, Run], *, admitted: bool, prepared: bool
    ) -> None:
        """Write how the pod is."""
        await self._object.write_status(self._document(plan, runs, previous, admitted=admitted, prepared=prepared))

    def sum_up(
        self,
        cause: Observation,
        plan: Plan,
        runs: Runs,
        previous: Mapping[ContainerName, Run],
        *,
        prepared: bool,
        rejection: Rejection | None,
    ) -> str:
        """Work out the last status of a pod whose containers have stopped, and return its phase. `cause` is why the pod
        ends. `plan` is for a pod that completed; `rejection` for one that was rejected."""
        now, pod = self._parts.clock.now(), self._object.pod
        if cause is Observation.FINISHED:
            return pod.status.phase  # its status is left as it is
        if cause is Observation.REJECTED and rejection is not None:
            self._last = self._rejected(rejection, runs, previous)
            return "Failed"
        if cause is not Observation.COMPLETED:
            runs = container_plan.stopped(pod, runs, now)
            outcome = pod.status.phase if pod.is_finished else container_plan.outcome(container_plan.own(pod), runs)
            plan = Plan(outcome="Failed" if cause is Observation.EXPIRED else outcome)
        self._last = self._document(plan, runs, previous, admitted=True, prepared=prepared)
        if cause is Observation.EXPIRED:
            self._last |= {"reason": LATE.reason, "message": LATE.message}
        return plan.outcome or ""

    def _rejected(self, rejection: Rejection, runs: Runs, previous: Mapping[ContainerName, Run]) -> Document:
        """Return the status of a rejected pod. It has containers only if it had some before: they ran until the machine
        was restarted, or waited for a device plugin."""
        now, pod = self._parts.clock.now(), self._object.pod
        last = status.rejected(rejection, self._object.document, now)
        if not pod.status.container_statuses:
            return last
        stopped = container_plan.stopped(pod, runs, now)
        return self._document(Plan(outcome="Failed"), stopped, previous, admitted=True, prepared=False) | last

    async def show_stopped(self) -> None:
        """Write how the containers have ended. The pod keeps its phase: as soon as it is over for the cluster, its
        devices count as free."""
        if self._known is not None and self._known.outcome is not None:
            known = replace(self._known, is_over=False)
            now = self._parts.clock.now()
            await self._object.write_status(status.document(self._object.pod, known, self._object.document, now))

    async def publish(self) -> None:
        """Write what was summed up."""
        if self._last is not None:
            await self._object.write_status(self._last)

    async def show_health(self) -> None:
        """Write the latest health of the devices that an ended pod had. It may explain the end."""
        health = partial(self._parts.claim_health, self._object.pod)
        await self._object.write_status(status.with_health(self._object.pod, health, self._object.document))

    def _document(
        self, plan: Plan, runs: Runs, previous: Mapping[ContainerName, Run], *, admitted: bool, prepared: bool
    ) -> Document:
        parts, pod = self._parts, self._object.pod
        self._known = status.Facts(
            admitted,
            runs,
            previous,
            plan.waiting,
            plan.outcome,
            self._health,
            prepared=prepared,
            address=parts.settings.address,
        )
        return status.document(pod, self._known, self._object.document, parts.clock.now())

    def _health(self, container: Container) -> tuple[ResourceStatus, ...]:
        parts, pod = self._parts, self._object.pod
        return (*parts.devices.statuses(pod.uid, container.name), *parts.claim_health(pod, container))
