"""What becomes of a claim when those who used it are done: pure decisions.

A claim is deallocated when its last consumer goes, and only then: one that was never reserved keeps what it has,
because whoever allocated it may not have reserved it yet. A claim that is to vanish, and that waits for nobody but us,
is not written once more before it goes: its devices are free when it is gone.
"""

from collections.abc import Mapping

from msgspec import Struct

from devlet.control.claims.pod_fates import Fate
from devlet.objects.claims.from_template import DELETE_PROTECTION
from devlet.objects.types.claim import ConsumerReference, ResourceClaim
from devlet.objects.types.meta import OwnerReference

__all__ = ["Release", "is_pod", "owning_pod", "plan"]

_OVER = (Fate.DONE, Fate.GONE)


class Release(Struct, frozen=True):
    """To be done in this order. `kept` is what reservedFor becomes, None to leave the status alone."""

    kept: tuple[ConsumerReference, ...] | None = None
    deallocate: bool = False
    delete: bool = False
    unprotect: bool = False


def is_pod(consumer: ConsumerReference) -> bool:
    """Others are kept whatever happens: we cannot know what they are."""
    return consumer.api_group == "" and consumer.resource == "pods"


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    owner = claim.metadata.controller
    return owner if owner and (owner.api_version, owner.kind) == ("v1", "Pod") else None


def plan(claim: ResourceClaim, fates: Mapping[str, Fate], *, surplus: bool = False) -> Release | None:
    """None if everything may stay. `fates` are those of consumers and owner, by UID; `surplus` says that the owner
    lives and has another claim instead of this one."""
    before = claim.status.reserved_for
    kept = tuple(c for c in before if not (is_pod(c) and fates.get(c.uid) in _OVER))
    if kept:
        return Release(kept) if len(kept) < len(before) else None
    owner = owning_pod(claim)
    over = owner is not None and fates.get(owner.uid) in _OVER
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
