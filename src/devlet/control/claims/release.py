"""What to do with a claim when its consumers are done: pure decisions.

A claim is deallocated when its last consumer is gone, and only then: a claim that was never reserved keeps its devices,
because the client that allocated it may reserve it next. A claim that is about to be deleted, and that has no finalizer
but ours, is not deallocated first: its devices are free when it is gone.
"""

from collections.abc import Mapping

from msgspec import Struct

from devlet.control.claims.pod_outcomes import PodOutcome
from devlet.objects.claims.from_template import DELETE_PROTECTION
from devlet.objects.types.claim import ConsumerReference, ResourceClaim
from devlet.objects.types.meta import OwnerReference

__all__ = ["Release", "is_pod", "owning_pod", "plan"]

_OVER = (PodOutcome.FINISHED, PodOutcome.GONE)


class Release(Struct, frozen=True):
    """The writes to be done, in this order. `kept` is the new reservedFor; None leaves the status alone."""

    kept: tuple[ConsumerReference, ...] | None = None
    deallocate: bool = False
    delete: bool = False
    unprotect: bool = False


def is_pod(consumer: ConsumerReference) -> bool:
    """Return True for a pod. Other consumers are always kept, because we know nothing about them."""
    return consumer.api_group == "" and consumer.resource == "pods"


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    owner = claim.metadata.controller
    return owner if owner and (owner.api_version, owner.kind) == ("v1", "Pod") else None


def plan(claim: ResourceClaim, outcomes: Mapping[str, PodOutcome], *, surplus: bool = False) -> Release | None:
    """Return None if nothing is to be done. `outcomes` are those of consumers and owner, by UID. `surplus` means that
    the owner is alive and uses another claim instead of this one."""
    before = claim.status.reserved_for
    kept = tuple(c for c in before if not (is_pod(c) and outcomes.get(c.uid) in _OVER))
    if kept:
        return Release(kept) if len(kept) < len(before) else None
    owner = owning_pod(claim)
    over = owner is not None and outcomes.get(owner.uid) in _OVER
    return _unused(claim, unwanted=over or (surplus and claim.status.allocation is None))


def _unused(claim: ResourceClaim, *, unwanted: bool) -> Release | None:
    finalizers, deleting = claim.metadata.finalizers, claim.metadata.is_deleting
    protected = DELETE_PROTECTION in finalizers
    ends, used_before = unwanted or deleting, bool(claim.status.reserved_for)
    release = Release(delete=unwanted and not deleting, unprotect=protected and (ends or used_before))
    vanishes = ends and set(finalizers) <= {DELETE_PROTECTION}
    if not vanishes and (used_before or (ends and protected and claim.status.allocation is not None)):
        release = Release((), protected, release.delete, release.unprotect)
    return release if release != Release() else None
