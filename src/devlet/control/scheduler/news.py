"""Which of the changes that the informers tell are worth another try. Pure."""

from devlet.cluster.informer import Changed
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["concerns", "lost_consumers", "lost_devices", "matters"]


def concerns(old: Pod, new: Pod) -> bool:
    """Whether a change may make a difference. What we write into its status ourselves does not."""
    return (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.metadata.generation != new.metadata.generation
        or old.spec != new.spec
    )


def matters(change: Changed[ResourceClaim]) -> bool:
    """Whether a pod that waits may be helped by a change of its claim."""
    old, new = change.old, change.new
    if old is None or new is None or old.uid != new.uid:
        return True
    before, after = old.metadata, new.metadata
    return (
        old.status != new.status
        or before.is_deleting != after.is_deleting
        or before.owner_references != after.owner_references
    )


def lost_devices(change: Changed[ResourceClaim]) -> bool:
    if change.old is None or change.old.status.allocation is None:
        return False
    return change.new is None or change.new.status.allocation is None


def lost_consumers(change: Changed[ResourceClaim]) -> bool:
    """Return True if a pod stopped using the claim: it may have a single consumer now."""
    if change.old is None or change.new is None:
        return False
    return len(change.new.status.reserved_for) < len(change.old.status.reserved_for)
