"""Why a pending pod is not scheduled: known from its last attempt, or computed once for all pods of its kind."""

from functools import partial

import anyio

from devlet.control.scheduler import reasons
from devlet.control.scheduler.cluster_state import ClusterState
from devlet.control.scheduler.pending import PendingPod, PendingPods
from devlet.control.scheduler.settings import Settings
from devlet.control.scheduler.unschedulable_kinds import UnschedulableKinds, kind_of
from devlet.errors import InvalidInput
from devlet.kit.clock import Clock

__all__ = ["Explainer"]

POLL = 0.01  # seconds between two looks at whether the queue is empty


class Explainer:
    def __init__(self, state: ClusterState, pending: PendingPods, clock: Clock, settings: Settings) -> None:
        self._state = state
        self._pending = pending
        self._clock = clock
        self._settings = settings
        self._known = UnschedulableKinds()

    async def reason(self, record: PendingPod) -> str:
        """Return why the pod waits; empty if it does not, or could be scheduled by now."""
        refusal = record.refusal
        if refusal is None or refusal.reason:
            return refusal.reason if refusal else ""
        try:
            subject = self._state.read(record.pod)
        except InvalidInput as e:
            return str(e)
        if isinstance(subject, str):
            return subject
        await self._attempts_first()
        version, kind = self._version, kind_of(subject, self._state.nodes, self._pending.arrivals)
        if known := self._known.reason(kind, version):
            return known
        state = self._state
        find = partial(reasons.reason, subject, state.nodes, state.devices, self._settings.search.explain)
        try:
            found = await state.devices.in_thread(find)
        except InvalidInput as e:
            return str(e)
        if found and (subject.waiting or subject.extended) and (hidden := state.slices.hidden()):
            found = f"{found}; {reasons.hidden(hidden)}"[: reasons.LENGTH_MAX]
        if found and version == self._version and not any(claim.name in found for claim in subject.claims):
            self._known.add(kind, version, found)
        return found

    async def _attempts_first(self) -> None:
        """Wait a moment for pods whose attempt is due: finding a reason may take longer than an attempt."""
        with anyio.move_on_after(self._settings.reports.again):
            while self._pending.queue.ready:
                await self._clock.sleep(POLL)

    @property
    def _version(self) -> int:
        """A number that changes whenever reasons may have changed."""
        return self._pending.queue.changes + self._pending.losses
