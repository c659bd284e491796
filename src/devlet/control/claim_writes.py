"""Allocate, reserve and deallocate claims: the one way to do so, for the scheduler and the claim controller.

A write that allocates or deallocates names the version of the claim that the decision was based on. After a conflict
the claim is read again, and the write is repeated if it is still right. A write whose answer was lost may have been
stored: the claim is read until its state is known, because its devices must not be given to another claim before then.
Reservations of an allocated claim do not conflict (see `reservations`).
"""

from collections.abc import Callable
from itertools import count

import msgspec

from devlet.cluster.client import Cluster, MergePatch, WriteOptions
from devlet.control.reservations import Reservations, consumer_document, consumer_of, refusal_of
from devlet.errors import Conflict, DevletError, NotFound, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.chance import random
from devlet.kit.clock import Clock
from devlet.objects.claims.from_template import DELETE_PROTECTION
from devlet.objects.documents import Document, view
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.objects.pods.claims import is_reserved_for
from devlet.objects.types.claim import ConsumerReference, DeviceResult, ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import format_time

__all__ = ["ClaimWriter"]

Decide = Callable[[ResourceClaim], Document | None]
"""Returns the claim's new status as a merge patch, or None if there is nothing to do."""


def _decode(document: Document) -> ResourceClaim:
    return view(ResourceClaim, document)


class ClaimWriter:
    """The writes to claims. Each method returns the claim as it is stored.

    `tries` limits the writes per call. `decode` reads the claims that the cluster returns, and may take note of them.
    `patience` is the delay between two reads after an answer was lost."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        tries: int = 5,
        decode: Callable[[Document], ResourceClaim] = _decode,
        patience: Backoff = Backoff(0.1, 5.0),
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._tries = tries
        self._decode = decode
        self._patience = patience
        self._reservations = Reservations(cluster, decode, self._read_after, tries)

    async def reserve(self, claim: ResourceClaim, pod: Pod, allocation: Document | None = None) -> ResourceClaim:
        """Reserve the claim for the pod. With an `allocation`, also allocate it, in the same write.

        Raises NotFound if the claim is gone, and Conflict if it is being deleted, already has the maximum number of
        consumers, or has a different allocation than `claim` has or is to get."""
        if allocation is not None:
            return await self._allocate(claim, pod, allocation)
        if is_reserved_for(claim, pod):
            return claim
        if text := refusal_of(claim):
            raise Conflict(text)
        return await self._reservations.add(claim, pod)

    async def _allocate(self, claim: ResourceClaim, pod: Pod, allocation: Document) -> ResourceClaim:
        def decide(now: ResourceClaim) -> Document | None:
            if now.metadata.is_deleting:
                raise Conflict(f"claim {now.name} is being deleted")
            if now.status.allocation is not None:
                if _is_done(now, pod, allocation):
                    return None
                raise Conflict(f"claim {now.name} was allocated by another scheduler")
            stamped = {**allocation, "allocationTimestamp": format_time(self._clock.now())}
            return {"allocation": stamped, "reservedFor": [consumer_document(consumer_of(pod))]}

        return await self._write(claim, decide, protect=True)

    async def give_back(self, claim: ResourceClaim, pod: Pod, *, deallocate: bool) -> ResourceClaim:
        """Remove the pod's reservation. With `deallocate`, also free the devices if no other consumer is left."""

        def decide(now: ResourceClaim) -> Document | None:
            others = [each for each in now.status.reserved_for if each.uid != pod.uid]
            if len(others) == len(now.status.reserved_for):
                return None
            return _status(others, free=deallocate and not others)

        return await self._write(claim, decide)

    async def deallocate(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Free the claim's devices. Raises Conflict if it is reserved for a consumer other than the pod."""

        def decide(now: ResourceClaim) -> Document | None:
            if now.status.allocation is None:
                return None
            if any(each.uid != pod.uid for each in now.status.reserved_for):
                raise Conflict(f"claim {now.name} is in use by another consumer")
            return _status([], free=True)

        return await self._write(claim, decide)

    async def _protect(self, claim: ResourceClaim) -> ResourceClaim:
        """Add the finalizer that keeps an allocated claim from being removed."""
        for _ in range(self._tries):
            if claim.metadata.is_deleting:
                raise Conflict(f"claim {claim.name} is being deleted")
            if DELETE_PROTECTION in claim.metadata.finalizers:
                return claim
            patch = {"metadata": {**_guard(claim), "finalizers": [*claim.metadata.finalizers, DELETE_PROTECTION]}}
            try:
                return _decode(await self._patch(claim, patch))
            except (Conflict, Unavailable) as e:
                claim = await self._read_after(claim, e)
        raise Conflict(f"claim {claim.name} keeps being modified concurrently")

    async def _write(self, claim: ResourceClaim, decide: Decide, *, protect: bool = False) -> ResourceClaim:
        """Write the status that `decide` returns. With `protect`, make sure of the finalizer before each try: the claim
        controller may be about to remove it after the claim's last release."""
        problem: DevletError | None = None
        for _ in range(self._tries):
            if protect and DELETE_PROTECTION not in claim.metadata.finalizers:
                claim = await self._protect(claim)
            if (status := decide(claim)) is None:
                return claim
            try:
                return self._decode(await self._patch(claim, {"metadata": _guard(claim), "status": status}, "status"))
            except (Conflict, Unavailable) as e:
                problem = e if isinstance(e, Unavailable) else None
                claim = await self._read_after(claim, e)
        raise problem or Conflict(f"claim {claim.name} keeps being modified concurrently")

    async def _patch(self, claim: ResourceClaim, patch: Document, subresource: str = "") -> Document:
        metadata = claim.metadata
        return await self._cluster.patch(
            RESOURCE_CLAIMS,
            metadata.name,
            MergePatch(patch),
            metadata.namespace,
            subresource=subresource,
            options=WriteOptions(shaped=True),
        )

    async def _read_after(self, claim: ResourceClaim, error: DevletError) -> ResourceClaim:
        if isinstance(error, Unavailable):
            await self._clock.sleep(self._patience.delay(0, random.random))
        for attempt in count():
            try:
                return await self._read(claim)
            except Unavailable:
                await self._clock.sleep(self._patience.delay(attempt, random.random))
        raise AssertionError("unreachable")

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        found = self._decode(await self._cluster.get(RESOURCE_CLAIMS, claim.metadata.name, claim.metadata.namespace))
        if found.uid != claim.uid:
            raise NotFound(f"claim {claim.name} was replaced by another of that name")
        return found


def _is_done(claim: ResourceClaim, pod: Pod, allocation: Document) -> bool:
    """Return True if the write was stored although its answer was lost."""
    wanted = msgspec.convert(allocation["devices"].get("results") or (), tuple[DeviceResult, ...])
    return is_reserved_for(claim, pod) and claim.results == wanted


def _status(reserved: list[ConsumerReference], *, free: bool) -> Document:
    """Return the status as a patch. `free` also removes the device status that drivers reported."""
    patch: Document = {"reservedFor": [consumer_document(each) for each in reserved] or None}
    return patch | ({"allocation": None, "devices": None} if free else {})


def _guard(claim: ResourceClaim) -> Document:
    return {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}
