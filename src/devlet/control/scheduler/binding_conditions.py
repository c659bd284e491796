"""Wait for devices that must be attached before a pod can use them, until they are, have failed, or time is up.

Drivers report it with conditions in the claim's status. Waiting ends with a change of the claim; nothing is polled.
"""

from collections.abc import Sequence
from datetime import timedelta

from devlet.cluster.events import NORMAL, Recorder
from devlet.control.scheduler import claim_checks
from devlet.control.scheduler.claim_book import ClaimBook
from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.errors import Conflict
from devlet.kit.clock import Clock, wait
from devlet.objects.identifiers import ObjectKey
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["PENDING", "BindingConditions"]

PENDING = "BindingConditionsPending"


class BindingConditions:
    """`timeout` is in seconds, counted from the claim's allocation."""

    def __init__(
        self, book: ClaimBook, recorder: Recorder, metrics: SchedulerMetrics, clock: Clock, timeout: float
    ) -> None:
        self._book = book
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._timeout = timeout

    async def met(self, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        """Wait until all devices of these claims are ready. Raises Conflict if one never will be."""
        for claim in claims:
            if claim_checks.has_conditions(claim):
                await self._met(pod, claim)

    async def _met(self, pod: Pod, claim: ResourceClaim) -> None:
        began = self._clock.monotonic()
        key = (claim.metadata.namespace, claim.metadata.name)
        is_reported = False
        while True:
            changed = self._book.next_change(key)
            now = self._current(key, claim)
            state = claim_checks.binding(now)
            if state.state == "ready":
                return self._count(now, "success", began)
            if state.state == "failed":
                self._count(now, "failure", began)
                raise Conflict(state.message)
            left = self._left(now)
            if left <= 0:
                self._count(now, "timeout", began)
                raise Conflict(f"device binding timeout: {state.message}")
            if not is_reported:
                is_reported = True
                self._recorder.record(pod.reference, NORMAL, PENDING, state.message)
            await wait(changed, self._clock, left)

    def _current(self, key: ObjectKey, claim: ResourceClaim) -> ResourceClaim:
        now = self._book.get(*key)
        if now is None or now.uid != claim.uid:
            raise Conflict(f"claim {claim.name} was deleted while its devices were being attached")
        if now.status.allocation is None:
            raise Conflict(f"claim {claim.name} was deallocated while its devices were being attached")
        return now

    def _left(self, claim: ResourceClaim) -> float:
        now = self._clock.now()
        until = claim_checks.deadline(claim, self._timeout) or now + timedelta(seconds=self._timeout)
        return (until - now).total_seconds()

    def _count(self, claim: ResourceClaim, status: str, began: float) -> None:
        for driver in {result.driver for result in claim.results if result.binding_conditions}:
            self._metrics.waited(driver, status, self._clock.monotonic() - began)
