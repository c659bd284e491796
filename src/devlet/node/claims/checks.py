"""Whether a pod may use a claim as it is now, and what of it there is to prepare. Pure."""

from collections.abc import Mapping

from msgspec import Struct

from devlet.errors import NotPrepared
from devlet.node.claims.wanted import Wanted
from devlet.objects.identifiers import ClaimUID, DriverName
from devlet.objects.pods.claims import is_made_for, is_reserved_for
from devlet.objects.types.claim import DeviceResult, ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["Usable", "check", "main", "results_of"]


class Usable(Struct, frozen=True):
    """A claim that a pod may use: which devices of which driver it has, and what its requests are called."""

    uid: ClaimUID
    results: Mapping[DriverName, tuple[DeviceResult, ...]]
    requests: frozenset[str]


def check(claim: ResourceClaim, one: Wanted, pod: Pod, *, workloads: bool = False) -> Usable:
    """NotPrepared says why not; that may change."""
    name = one.key.name
    if one.must_be_owned and not is_made_for(claim, pod, workloads=workloads):
        raise NotPrepared(f"ResourceClaim {name} was not created for pod {pod.name} ({pod.uid})")
    if claim.status.allocation is None:
        raise NotPrepared(f"ResourceClaim {name} is not allocated")
    if not is_reserved_for(claim, pod, workloads=workloads):
        raise NotPrepared(
            f"pod {pod.name} ({pod.uid}) is not allowed to use ResourceClaim {name} ({claim.uid}): it is not reserved"
            " for the pod"
        )
    return _usable(claim)


def _usable(claim: ResourceClaim) -> Usable:
    named = {request.name for request in claim.spec.devices.requests}
    return Usable(claim.uid, results_of(claim), frozenset(named | {main(result.request) for result in claim.results}))


def results_of(claim: ResourceClaim) -> Mapping[DriverName, tuple[DeviceResult, ...]]:
    """The devices that are allocated to the claim, by driver."""
    results: dict[DriverName, tuple[DeviceResult, ...]] = {}
    for result in claim.results:
        results[result.driver] = (*results.get(result.driver, ()), result)
    return results


def main(request: str) -> str:
    """Of `request/subrequest`, which containers cannot name, the request."""
    return request.partition("/")[0]
