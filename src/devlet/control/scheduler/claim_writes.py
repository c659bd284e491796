"""How the scheduler writes to claims: allocation and reservation in one write, and back.

Every write names the version that it was decided on. If somebody else wrote meanwhile the claim is read again, and the
write repeated if it still makes sense. A write without an answer may have been done: the claim is read until it is
known, because devices that were given to it must not be given to somebody else before.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import msgspec

from devlet.cluster.client import Cluster, MergePatch, WriteOptions
from devlet.errors import Conflict, DevletError, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.clock import Clock
from devlet.objects.claim import ConsumerReference, DeviceResult, ResourceClaim
from devlet.objects.claim_from_template import DELETE_PROTECTION
from devlet.objects.documents import Document, view
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.pod import Pod
from devlet.objects.pod_claims import is_reserved_for
from devlet.objects.timestamps import format_time
from devlet.objects.validation.claim_status import RESERVED_FOR_MAX

__all__ = ["FULL", "ClaimWriter", "is_full"]

FULL = f"claim {{}} is used by {RESERVED_FOR_MAX} pods already, which is the most that it can be"

Decide = Callable[[ResourceClaim], Document | None]
"""The new status of a claim as a merge patch, given the claim as it is; None: nothing to do."""


@dataclass(frozen=True, slots=True)
class ClaimWriter:
    """Answers are the documents as they were stored; `tries` is how often a claim is read again. `seen` hears of what
    was read."""

    cluster: Cluster
    clock: Clock
    tries: int = 5
    seen: Callable[[Document], object] = lambda _: None
    patience: Backoff = field(default=Backoff(0.1, 5.0))  # between two tries to read what became of a write

    async def reserve(self, claim: ResourceClaim, pod: Pod, allocation: Document | None) -> Document | None:
        """Let the pod use the claim; `allocation` if it has no devices yet. None if there was nothing to do.

        Raises Conflict if the claim has gone, or has other devices by now."""

        def decide(now: ResourceClaim) -> Document | None:
            if now.metadata.is_deleting:
                raise Conflict(f"claim {now.name} is being deleted")
            if allocation is not None and now.status.allocation is not None:
                if _is_done(now, pod, allocation):
                    return None
                raise Conflict(f"claim {now.name} was allocated by somebody else")
            if allocation is None and now.status.allocation is None:
                raise Conflict(f"claim {now.name} was deallocated")
            if allocation is None and now.status.allocation != claim.status.allocation:
                raise Conflict(f"claim {now.name} has other devices by now")
            return _with_pod(now, pod, self._stamped(allocation))

        return await self._write(claim, decide, protect=allocation is not None)

    async def give_back(self, claim: ResourceClaim, pod: Pod, *, deallocate: bool) -> Document | None:
        """The pod does not use the claim after all. `deallocate`: nor does it need its devices, if nobody else does."""

        def decide(now: ResourceClaim) -> Document | None:
            others = [each for each in now.status.reserved_for if each.uid != pod.uid]
            if len(others) == len(now.status.reserved_for):
                return None
            return _status(others, free=deallocate and not others)

        return await self._write(claim, decide)

    async def deallocate(self, claim: ResourceClaim, pod: Pod) -> Document | None:
        """Take its devices away. Raises Conflict if somebody besides the pod uses it."""

        def decide(now: ResourceClaim) -> Document | None:
            if now.status.allocation is None:
                return None
            if any(each.uid != pod.uid for each in now.status.reserved_for):
                raise Conflict(f"claim {now.name} is used by somebody else")
            return _status([], free=True)

        return await self._write(claim, decide)

    async def _protect(self, claim: ResourceClaim) -> ResourceClaim:
        """It must not vanish while it has devices."""
        for _ in range(self.tries):
            if claim.metadata.is_deleting:
                raise Conflict(f"claim {claim.name} is being deleted")
            if DELETE_PROTECTION in claim.metadata.finalizers:
                return claim
            patch = {"metadata": {**_guard(claim), "finalizers": [*claim.metadata.finalizers, DELETE_PROTECTION]}}
            try:
                return view(ResourceClaim, await self._patch(claim, patch))
            except (Conflict, Unavailable) as e:
                claim = await self._read_after(claim, e)
        raise Conflict(f"claim {claim.name} is written by others all the time")

    async def _write(self, claim: ResourceClaim, decide: Decide, *, protect: bool = False) -> Document | None:
        """`protect`: not without the finalizer. Who released the claim before may take it away at any time."""
        problem: DevletError | None = None
        for _ in range(self.tries):
            if protect and DELETE_PROTECTION not in claim.metadata.finalizers:
                claim = await self._protect(claim)
            if (status := decide(claim)) is None:
                return None
            try:
                return await self._patch(claim, {"metadata": _guard(claim), "status": status}, "status")
            except (Conflict, Unavailable) as e:
                problem = e if isinstance(e, Unavailable) else None
                claim = await self._read_after(claim, e)
        raise problem or Conflict(f"claim {claim.name} is written by others all the time")

    async def _patch(self, claim: ResourceClaim, patch: Document, subresource: str = "") -> Document:
        metadata = claim.metadata
        return await self.cluster.patch(
            RESOURCE_CLAIMS,
            metadata.name,
            MergePatch(patch),
            metadata.namespace,
            subresource=subresource,
            options=WriteOptions(shaped=True),
        )

    async def _read_after(self, claim: ResourceClaim, error: Conflict | Unavailable) -> ResourceClaim:
        if isinstance(error, Unavailable):
            await self.clock.sleep(self.patience.delay(0, random.random))
        for attempt in count():
            try:
                return await self._read(claim)
            except Unavailable:
                await self.clock.sleep(self.patience.delay(attempt, random.random))
        raise AssertionError("unreachable")

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        document = await self.cluster.get(RESOURCE_CLAIMS, claim.metadata.name, claim.metadata.namespace)
        self.seen(document)
        found = view(ResourceClaim, document)
        if found.uid != claim.uid:
            raise NotFound(f"claim {claim.name} was replaced by another of that name")
        return found

    def _stamped(self, allocation: Document | None) -> Document | None:
        return allocation and {**allocation, "allocationTimestamp": format_time(self.clock.now())}


def is_full(claim: ResourceClaim) -> bool:
    return len(claim.status.reserved_for) >= RESERVED_FOR_MAX


def _is_done(claim: ResourceClaim, pod: Pod, allocation: Document) -> bool:
    """Whether the claim has what was to be written: the answer was lost."""
    wanted = msgspec.convert(allocation["devices"].get("results") or (), tuple[DeviceResult, ...])
    return is_reserved_for(claim, pod) and claim.results == wanted


def _with_pod(claim: ResourceClaim, pod: Pod, allocation: Document | None) -> Document | None:
    reserved = claim.status.reserved_for
    if any(each.uid == pod.uid for each in reserved):
        return {"allocation": allocation} if allocation is not None else None
    if is_full(claim):
        raise Conflict(FULL.format(claim.name))
    consumer = ConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
    given: Document = {"allocation": allocation} if allocation is not None else {}
    return given | {"reservedFor": [*map(_document, reserved), _document(consumer)]}


def _status(reserved: list[ConsumerReference], *, free: bool) -> Document:
    """What a driver said about devices goes with them."""
    patch: Document = {"reservedFor": [_document(each) for each in reserved] or None}
    return patch | ({"allocation": None, "devices": None} if free else {})


def _document(consumer: ConsumerReference) -> Document:
    found: Document = msgspec.to_builtins(consumer)
    return {key: value for key, value in found.items() if value}


def _guard(claim: ResourceClaim) -> Document:
    return {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}
