"""The claims of one pod: preparing them before its first container starts, and unpreparing them after the last one."""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

import anyio
from msgspec.structs import replace

from devlet.cluster.events import WARNING
from devlet.errors import DevletError
from devlet.kit.facts import facts
from devlet.node.pods.api_object import PodObject
from devlet.node.pods.attempts import Attempts
from devlet.node.pods.container_plan import CREATING, Plan, Runs
from devlet.node.pods.life import Observation
from devlet.node.pods.parts import Parts
from devlet.objects.types.container import ContainerStateWaiting

__all__ = ["PodClaims"]

log = logging.getLogger(__name__)

NOT_PREPARED = "FailedPrepareDynamicResources"
NOT_UNPREPARED = "FailedUnprepareDynamicResources"


class PodClaims:
    __slots__ = (
        "_known",
        "_object",
        "_parts",
        "_preparing",
        "_problem",
        "_scope",
        "_unpreparing",
        "is_prepared",
        "is_unprepared",
    )

    def __init__(self, subject: PodObject, parts: Parts) -> None:
        self._object = subject
        self._parts = parts
        self.is_prepared = False
        self.is_unprepared = False
        settings = parts.settings
        self._preparing = Attempts(parts.clock, settings.prepare, settings.soonest)
        self._unpreparing = Attempts(parts.clock, settings.unprepare, settings.soonest)
        self._known: object = None  # which claims the pod had at the last attempt to prepare them
        self._problem = ContainerStateWaiting(reason=CREATING)
        self._scope: anyio.CancelScope | None = None

    def preparation(self, runs: Runs) -> Observation:
        """Return DUE, WAITING or DONE. The claims of containers that run were prepared before: they are prepared again
        only if the claim manager does not know that."""
        if not self.is_prepared and _survived(runs):
            self.is_prepared = self._parts.claims.is_prepared(self._object.pod)
        if self.is_prepared:
            return Observation.DONE
        is_due = self._preparing.is_due() or self._claims_of_pod() != self._known
        return Observation.DUE if is_due else Observation.WAITING

    @property
    def unpreparation(self) -> Observation:
        """DUE, WAITING or DONE."""
        if self.is_unprepared:
            return Observation.DONE
        return Observation.DUE if self._unpreparing.is_due() else Observation.WAITING

    @property
    def preparation_due(self) -> datetime:
        return self._preparing.due

    @property
    def unpreparation_due(self) -> datetime:
        return self._unpreparing.due

    async def prepare(self, beside: Callable[[], Awaitable[None]]) -> None:
        """Make one attempt, and run `beside` meanwhile if the pod has claims. The attempt is given up when `beside`
        returns, and at `cancel`."""
        pod = self._object.pod
        self._known = self._claims_of_pod()
        self._preparing.begin()
        async with anyio.create_task_group() as tasks:
            self._scope = tasks.cancel_scope
            if pod.spec.resource_claims or pod.status.extended_resource_claim_status:
                tasks.start_soon(self._cancel_after, beside)
            try:
                await self._parts.claims.prepare(pod)
                self.is_prepared = True
            except DevletError as e:
                return self._not_prepared(e)
            finally:
                self.cancel()
        self._preparing.succeeded()

    def cancel(self) -> None:
        """Give up the attempt to prepare the claims, if there is one."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def unprepare(self) -> None:
        """Make one attempt."""
        self._unpreparing.begin()
        try:
            await self._parts.claims.unprepare(self._object.pod.uid)
        except DevletError as e:
            self._object.record(WARNING, NOT_UNPREPARED, f"Failed to unprepare dynamic resources: {e}")
            due = self._unpreparing.failed()
            log.warning("claims not unprepared", extra=facts(err=e, again=due))
        else:
            self._unpreparing.succeeded()
            self.is_unprepared = True

    def hurry(self) -> bool:
        """Bring the next attempt forward: a driver or a claim has changed. Return True if that makes a difference."""
        return any([self._preparing.hurry(), self._unpreparing.hurry()])  # both, whatever the first one returns

    def hold_back(self, plan: Plan) -> Plan:
        """Return the plan for the time until the claims are prepared: no container starts, and each says why."""
        held = {each.container.name: self._problem for each in plan.start}
        return replace(plan, start=(), waiting={**plan.waiting, **held})

    def _claims_of_pod(self) -> object:
        status = self._object.pod.status
        return status.resource_claim_statuses, status.extended_resource_claim_status

    async def _cancel_after(self, wait: Callable[[], Awaitable[None]]) -> None:
        await wait()
        self.cancel()

    def _not_prepared(self, error: DevletError) -> None:
        self._problem = ContainerStateWaiting(reason=CREATING, message=str(error))
        self._object.record(WARNING, NOT_PREPARED, f"Failed to prepare dynamic resources: {error}")
        due = self._preparing.failed()
        log.info("claims not prepared", extra=facts(err=error, again=due))


def _survived(runs: Runs) -> bool:
    """Return True if any container was started since the machine booted."""
    return any(run.exit is None or not run.exit.is_lost for run in runs.values())
