"""Which claims of a pod are missing, and which are not reserved for it: pure decisions."""

from typing import Protocol

from devlet.control.claims.pod_outcomes import may_start
from devlet.errors import InvalidInput, NotFound
from devlet.objects.claims.from_template import ENTRY_ANNOTATION, EXTENDED_ANNOTATION, is_generated_for
from devlet.objects.pods.claims import is_made_for, is_reserved_for, resolve
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod, PodResourceClaim

__all__ = ["Claims", "is_surplus", "missing", "recorded_name", "unreserved"]


class Claims(Protocol):
    def get(self, name: str, namespace: str = "") -> ResourceClaim | None: ...


def missing(pod: Pod, claims: Claims) -> list[PodResourceClaim]:
    """Return the entries for which a claim must be created: none is recorded, or the recorded one is gone or belongs to
    another pod. An entry that cannot be resolved is included, so that the error is reported."""
    if not may_start(pod):
        return []
    return [entry for entry in pod.spec.resource_claims if _is_missing(pod, entry, claims)]


def _is_missing(pod: Pod, entry: PodResourceClaim, claims: Claims) -> bool:
    try:
        found = resolve(pod, entry)
    except (InvalidInput, NotFound):
        return True
    if found.name is None or not found.must_be_owned:
        return False
    claim = claims.get(found.name, pod.metadata.namespace)
    return claim is None or not is_made_for(claim, pod)


def unreserved(pod: Pod, claims: Claims) -> list[ResourceClaim]:
    """Return the allocated claims of a placed pod that are not reserved for it."""
    if not pod.spec.node_name or not may_start(pod):
        return []
    used = {claim.name: claim for entry in pod.spec.resource_claims if (claim := _usable(pod, entry, claims))}
    return [claim for claim in used.values() if not is_reserved_for(claim, pod)]


def _usable(pod: Pod, entry: PodResourceClaim, claims: Claims) -> ResourceClaim | None:
    try:
        found = resolve(pod, entry)
    except (InvalidInput, NotFound):
        return None
    claim = claims.get(found.name, pod.metadata.namespace) if found.name else None
    if claim is None or claim.status.allocation is None or claim.metadata.is_deleting:
        return None
    return claim if not found.must_be_owned or is_made_for(claim, pod) else None


def recorded_name(pod: Pod, entry_name: str) -> str | None:
    return next((s.resource_claim_name for s in pod.status.resource_claim_statuses if s.name == entry_name), None)


def is_surplus(claim: ResourceClaim, pod: Pod, claims: Claims) -> bool:
    """Return True if the claim was created for an entry of the pod, or for its extended resources, that has another
    claim.

    This happens if two controllers are at work, or if the answer to the first creation was lost."""
    if EXTENDED_ANNOTATION in claim.metadata.annotations:
        return _is_unused_extended(claim, pod)
    entry_name = claim.metadata.annotations.get(ENTRY_ANNOTATION, "")
    if not is_generated_for(claim.metadata, pod, entry_name):
        return False
    name = recorded_name(pod, entry_name)
    other = claims.get(name, claim.metadata.namespace) if name and name != claim.name else None
    if other is None or other.metadata.is_deleting:
        return False
    return is_generated_for(other.metadata, pod, entry_name)


def _is_unused_extended(claim: ResourceClaim, pod: Pod) -> bool:
    """Return True if the pod has a node and its status names another claim for its extended resources, or none."""
    owner, used = claim.metadata.controller, pod.status.extended_resource_claim_status
    if owner is None or owner.uid != pod.uid or not pod.spec.node_name:
        return False
    return used is None or used.resource_claim_name != claim.name
