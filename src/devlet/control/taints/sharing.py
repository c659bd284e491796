"""Whether one more pod may use a claim that is allocated already.

A taint keeps new pods away from a device, also those that find their claim allocated: the API promises it, and the
reference looks at taints only when it allocates.
"""

from devlet.control.taints.device_taints import TaintsOf
from devlet.control.taints.evictions import Cause
from devlet.objects.pods.tolerations import tolerates
from devlet.objects.types.claim import ResourceClaim

__all__ = ["blocking"]


def blocking(claim: ResourceClaim, taints_of: TaintsOf) -> str | None:
    """What keeps further pods from the claim, for people; None: nothing does. `taints_of` is `DeviceTaints.of`."""
    for result in claim.results:
        for taint in taints_of(result.identity):
            if not any(tolerates(toleration, taint.taint) for toleration in result.tolerations):
                return f"{Cause(result.identity, taint)}, which the claim does not tolerate"
    return None
