"""Which changes of pods and claims are relevant to scheduling. Pure."""

from devlet.cluster.informer import Changed
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["has_fewer_consumers", "is_relevant", "may_help_pods", "was_deallocated"]


def is_relevant(old: Pod, new: Pod) -> bool:
    """Return True if the change may affect where the pod can run. Conditions that we write ourselves do not."""
    return (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.metadata.generation != new.metadata.generation
        or old.spec != new.spec
    )


def may_help_pods(change: Changed[ResourceClaim]) -> bool:
    """Return True if a pod that waits for the claim may be schedulable after the change."""
    old, new = change.old, change.new
    if old is None or new is None or old.uid != new.uid:
        return True
    before, after = old.metadata, new.metadata
    return (
        old.status != new.status
        or before.is_deleting != after.is_deleting
        or before.owner_references != after.owner_references
    )


def was_deallocated(change: Changed[ResourceClaim]) -> bool:
    """Return True if the claim had devices before the change and has none after it."""
    if change.old is None or change.old.status.allocation is None:
        return False
    return change.new is None or change.new.status.allocation is None


def has_fewer_consumers(change: Changed[ResourceClaim]) -> bool:
    """Return True if a pod stopped using the claim: it may have a single consumer now."""
    if change.old is None or change.new is None:
        return False
    return len(change.new.status.reserved_for) < len(change.old.status.reserved_for)
