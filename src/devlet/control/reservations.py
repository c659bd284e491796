"""Reserve allocated claims for pods, without conflicts even if many pods share a claim and other clients write to it.

The patch adds entries to `reservedFor` by their UID and names no resourceVersion, so it cannot conflict. Pods that
arrive while a write is in flight share the next one. The API guarantees only that the result is valid: if the answer
shows a different allocation than the one that the decision was based on, the entry is removed again and the caller has
to decide again.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import msgspec

from devlet.cluster.client import Cluster, StrategicMergePatch, WriteOptions
from devlet.errors import Conflict, DevletError, InvalidObject, Unavailable
from devlet.kit.facts import facts
from devlet.kit.key_locks import KeyLocks
from devlet.objects.documents import Document
from devlet.objects.identifiers import PodUID
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.pods.claims import is_reserved_for
from devlet.objects.types.claim import ConsumerReference, ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.objects.validation.claim_status import RESERVED_FOR_MAX

log = logging.getLogger(__name__)

__all__ = ["FULL", "Reservations", "consumer_document", "consumer_of", "refusal_of"]

FULL = f"claim {{}} already has the maximum of {RESERVED_FOR_MAX} consumers"

Decode = Callable[[Document], ResourceClaim]
ReadAfter = Callable[[ResourceClaim, DevletError], Awaitable[ResourceClaim]]
"""Reads the claim after a failed write. Returns only when its state is known."""


@dataclass(slots=True, eq=False)
class _Batch:
    """The pods that share a write, and the outcome for each: the claim as it is stored, or an error."""

    pods: dict[PodUID, Pod]
    outcomes: dict[PodUID, ResourceClaim | DevletError] = field(default_factory=dict)
    done: anyio.Event = field(default_factory=anyio.Event)

    @property
    def open(self) -> list[Pod]:
        return [pod for uid, pod in self.pods.items() if uid not in self.outcomes]

    def fail(self, problem: DevletError) -> None:
        self.outcomes |= {pod.uid: problem for pod in self.open}

    def settle(self, claim: ResourceClaim) -> None:
        """Decide the pods whose outcome shows in the claim as it is after a failed write."""
        self.outcomes |= {pod.uid: claim for pod in self.open if is_reserved_for(claim, pod)}
        if claim.metadata.is_deleting:
            self.fail(Conflict(f"claim {claim.name} is being deleted"))
        elif claim.status.allocation is None:
            self.fail(Conflict(f"claim {claim.name} was deallocated"))
        free = RESERVED_FOR_MAX - len(claim.status.reserved_for)
        self.outcomes |= {pod.uid: Conflict(FULL.format(claim.name)) for pod in self.open[free:]}


class Reservations:
    """The reservations in flight. `decode` reads the answers to writes. `tries` limits the writes per batch."""

    def __init__(self, cluster: Cluster, decode: Decode, read_after: ReadAfter, tries: int) -> None:
        self._cluster = cluster
        self._decode = decode
        self._read_after = read_after
        self._tries = tries
        self._next: dict[str, _Batch] = {}  # by the claim's UID: the pods of the next write
        self._writing = KeyLocks[str]()

    async def add(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Reserve the claim for the pod, and return it as it is stored.

        Raises NotFound if the claim is gone, and Conflict if it is being deleted, already has the maximum number of
        consumers, or was deallocated or reallocated."""
        batch = self._next.get(claim.uid)
        if batch is None:
            batch = self._next[claim.uid] = _Batch({pod.uid: pod})
            await self._write_next(claim, batch)
        else:
            batch.pods[pod.uid] = pod
            await batch.done.wait()
        outcome = batch.outcomes[pod.uid]
        if isinstance(outcome, DevletError):
            raise outcome
        if outcome.status.allocation != claim.status.allocation:
            await self._take_back(claim, pod)
            raise Conflict(f"claim {claim.name} was reallocated")
        return outcome

    async def _take_back(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove the entry again, unless the pod has a node: then the other allocation is meant for it as well."""
        if pod.spec.node_name:
            return
        try:
            await self._patch(claim, [{"$patch": "delete", "uid": pod.uid}])
        except DevletError as e:  # the pod's next attempt finds the entry
            log.warning("reservation not removed", extra=facts(claim=claim.name, pod=pod.name, err=e))

    async def _write_next(self, claim: ResourceClaim, batch: _Batch) -> None:
        """Write the batch when the write before it is done. Until then, more pods may join it."""
        try:
            async with self._writing.hold([claim.uid]):
                del self._next[claim.uid]
                await self._write(claim, batch)
        except DevletError as e:
            batch.fail(e)
        finally:
            if self._next.get(claim.uid) is batch:
                del self._next[claim.uid]
            batch.fail(Conflict(f"claim {claim.name} was not reserved: the write was interrupted"))
            batch.done.set()

    async def _write(self, claim: ResourceClaim, batch: _Batch) -> None:
        problem: DevletError = Conflict(f"claim {claim.name} keeps being modified concurrently")
        for _ in range(self._tries):
            if not (pods := batch.open):
                return
            try:
                answer = await self._patch(claim, [consumer_document(consumer_of(pod)) for pod in pods])
            except (Conflict, InvalidObject, Unavailable) as e:
                problem = e
                batch.settle(await self._read_after(claim, e))
            else:
                stored = self._decode(answer)
                batch.outcomes |= {pod.uid: stored for pod in pods}
        batch.fail(problem)

    async def _patch(self, claim: ResourceClaim, entries: list[Document]) -> Document:
        patch = StrategicMergePatch({"metadata": {"uid": claim.uid}, "status": {"reservedFor": entries}})
        metadata = claim.metadata
        return await self._cluster.patch(
            RESOURCE_CLAIMS,
            metadata.name,
            patch,
            metadata.namespace,
            subresource="status",
            options=WriteOptions(shaped=True),
        )


def refusal_of(claim: ResourceClaim) -> str:
    """Return why the claim cannot be reserved for another consumer; empty if it can."""
    return FULL.format(claim.name) if len(claim.status.reserved_for) >= RESERVED_FOR_MAX else ""


def consumer_of(pod: Pod) -> ConsumerReference:
    return ConsumerReference(resource="pods", name=pod.name, uid=pod.uid)


def consumer_document(consumer: ConsumerReference) -> Document:
    found: Document = msgspec.to_builtins(consumer)
    return {key: value for key, value in found.items() if value}
