"""Devices that have to be attached before a pod can use them: wait until they are, have failed, or took too long.

Drivers tell by conditions in the claim's status. Whoever waits is woken by the claim's change; nobody polls.
"""

from collections.abc import Sequence
from datetime import timedelta

import anyio

from devlet.cluster.events import NORMAL, Recorder
from devlet.control.scheduler import claim_checks
from devlet.control.scheduler.claim_book import ClaimBook, ClaimKey
from devlet.control.scheduler.metrics import SchedulerMetrics
from devlet.errors import Conflict
from devlet.kit.clock import Clock, wait
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["PENDING", "BindingConditions"]

PENDING = "BindingConditionsPending"


class BindingConditions:
    """`timeout` is counted from a claim's allocation."""

    def __init__(
        self, book: ClaimBook, recorder: Recorder, metrics: SchedulerMetrics, clock: Clock, timeout: float
    ) -> None:
        self._book = book
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._timeout = timeout
        self._changes: dict[ClaimKey, anyio.Event] = {}

    def changed(self, claim: ClaimKey) -> None:
        if (event := self._changes.pop(claim, None)) is not None:
            event.set()

    async def met(self, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        """Return when all devices of these claims are ready. Raises Conflict if one never will be."""
        for claim in claims:
            if claim_checks.has_conditions(claim):
                await self._met(pod, claim)

    async def _met(self, pod: Pod, claim: ResourceClaim) -> None:
        began = self._clock.monotonic()
        key = (claim.metadata.namespace, claim.metadata.name)
        told = False
        while True:
            changed = self._changes.setdefault(key, anyio.Event())
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
            if not told:
                told = True
                self._recorder.record(pod.reference, NORMAL, PENDING, state.message)
            await wait(changed, self._clock, left)

    def _current(self, key: ClaimKey, claim: ResourceClaim) -> ResourceClaim:
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
