"""One attempt to schedule a pod: runs a decision, and performs the searches and writes that it asks for."""

from collections.abc import Hashable
from functools import partial

from msgspec.structs import replace

from devlet.cluster.client import Cluster
from devlet.control.claim_writes import ClaimWriter
from devlet.control.scheduler.binding import disown_claim, remove_claim
from devlet.control.scheduler.cluster_state import ClusterState
from devlet.control.scheduler.decision import (
    UNSCHEDULABLE,
    Deallocate,
    GiveBack,
    Refusal,
    RemoveLeftOver,
    Search,
    Write,
    decide,
)
from devlet.control.scheduler.pending import PendingPod, PendingPods
from devlet.control.scheduler.placing import Assignment, Placer
from devlet.control.scheduler.queue import Wake
from devlet.control.scheduler.settings import Settings
from devlet.control.scheduler.subject import Subject
from devlet.control.scheduler.unschedulable_kinds import UnschedulableKinds, kind_of
from devlet.control.search_time import SearchTime
from devlet.objects.types.claim import ResourceClaim, ResourceClaimStatus

__all__ = ["Attempts"]


class Attempts:
    def __init__(
        self, cluster: Cluster, state: ClusterState, pending: PendingPods, writer: ClaimWriter, settings: Settings
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._pending = pending
        self._writer = writer
        self._limits = settings.search
        self._placer = Placer(state.nodes, state.devices, settings.candidates)
        self._unschedulable = UnschedulableKinds()

    async def run(self, record: PendingPod) -> tuple[Subject, Assignment] | Refusal:
        """Find a place for the pod. Raises DevletError if a write fails, and InvalidInput if the pod cannot be read."""
        subject = self._state.read(record.pod)
        if isinstance(subject, str):
            return Refusal(Wake.ITSELF, subject, transient=True)
        outcome = await self._decided(record, subject)
        return outcome if isinstance(outcome, Refusal) else (subject, outcome)

    async def _decided(self, record: PendingPod, subject: Subject) -> Assignment | Refusal:
        decision = decide(subject, self._state)
        answer: Assignment | Refusal | None = None
        kind: Hashable = None
        version = -1
        while True:
            try:
                step = decision.send(answer)
            except StopIteration as end:
                outcome: Assignment | Refusal = end.value
                break
            answer = None
            if not isinstance(step, Search):
                await self._write(subject, step)
            elif step.freed:
                answer = await self._searched(subject, step.freed)
            else:
                if subject.needs.affinity.affinity:
                    self._pending.await_others(record)
                version = self._pending.queue.changes  # what changes during the search may help
                kind = kind_of(subject, self._state.nodes, self._pending.arrivals)
                known = self._unschedulable.has(kind, version)
                answer = UNSCHEDULABLE if known else await self._searched(subject)
        if outcome is UNSCHEDULABLE:
            self._unschedulable.add(kind, version)
        return outcome

    async def _searched(self, subject: Subject, freed: tuple[ResourceClaim, ...] = ()) -> Assignment | None:
        search = partial(self._place_without, subject, freed) if freed else partial(self._placer.place, subject)
        return await self._state.devices.searched(search, self._limits)

    def _place_without(self, subject: Subject, freed: tuple[ResourceClaim, ...], time: SearchTime) -> Assignment | None:
        names = {claim.name for claim in freed}
        claims = tuple(_without_devices(claim) if claim.name in names else claim for claim in subject.claims)
        held = {(claim.metadata.namespace, claim.metadata.name): claim.results for claim in freed}
        with self._state.devices.without(held):
            return self._placer.place(subject.with_claims(claims), time)

    async def _write(self, subject: Subject, write: Write) -> None:
        match write:
            case Deallocate(claim):
                await self._writer.deallocate(claim, subject.pod)
            case GiveBack(claim):
                await self._writer.give_back(claim, subject.pod, deallocate=True)
            case RemoveLeftOver(claim):
                await disown_claim(self._cluster, subject.pod)
                await remove_claim(self._cluster, claim, self._state.claims.read)


def _without_devices(claim: ResourceClaim) -> ResourceClaim:
    return replace(claim, status=ResourceClaimStatus())
