"""The claims behind the entries of a pod's `resourceClaims`.

A claim that was made from a template is found through a name in the pod's status. Anyone could have written that name
or created a claim with it, so if `must_be_owned` is set, callers check `is_made_for` before they use the claim.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from devlet.errors import InvalidInput, NotFound
from devlet.objects.identifiers import ClaimName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod, PodResourceClaim

__all__ = ["NOT_CREATED", "PodClaim", "claim_names", "is_made_for", "is_reserved_for", "pod_claims", "resolve"]

NOT_CREATED = "ResourceClaim not created yet"


@dataclass(frozen=True, slots=True)
class PodClaim:
    """The result for one entry. If there is no name, no claim was necessary: skip the entry."""

    name: ClaimName | None
    must_be_owned: bool


def resolve(pod: Pod, entry: PodResourceClaim) -> PodClaim:
    """Return the claim of one entry of the pod.

    Raises NotFound, with a text that ends in `ResourceClaim not created yet`, if the caller should try again later.
    Raises InvalidInput if the entry names neither claim nor template.
    """
    if entry.resource_claim_name is not None:
        return PodClaim(ClaimName(entry.resource_claim_name), must_be_owned=False)
    if entry.resource_claim_template_name is None:
        raise InvalidInput(f"{_subject(pod, entry)}: none of the supported fields are set")
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            name = status.resource_claim_name
            return PodClaim(ClaimName(name) if name is not None else None, must_be_owned=True)
    raise NotFound(f"{_subject(pod, entry)}: {NOT_CREATED}", resource="resourceclaims.resource.k8s.io")


def pod_claims(pod: Pod) -> dict[str, PodClaim]:
    """Return the claims of all entries, by entry name. Raises the errors of `resolve`."""
    return {entry.name: resolve(pod, entry) for entry in pod.spec.resource_claims}


def claim_names(pod: Pod) -> Iterator[ClaimName]:
    """Yield the claims that the pod is known to use so far: named, made from a template, or made for extended
    resources."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        if name := entry.resource_claim_name or made.get(entry.name):
            yield ClaimName(name)
    if pod.status.extended_resource_claim_status:
        yield ClaimName(pod.status.extended_resource_claim_status.resource_claim_name)


def _subject(pod: Pod, entry: PodResourceClaim) -> str:
    return f"pod {pod.metadata.namespace}/{pod.name}: claim {entry.name}"


def is_made_for(claim: ResourceClaim, pod: Pod, *, workloads: bool = False) -> bool:
    """Return whether the claim was made from a template for this pod or, with `workloads`, for its pod group."""
    owner = claim.metadata.controller
    if owner is None or claim.metadata.namespace != pod.metadata.namespace:
        return False
    return owner.uid == pod.uid or (
        workloads and owner.kind == "PodGroup" and _is_group(owner.name, owner.api_version, pod)
    )


def is_reserved_for(claim: ResourceClaim, pod: Pod, *, workloads: bool = False) -> bool:
    """Return whether the pod or, with `workloads`, its pod group may use the claim now."""
    return any(
        consumer.uid == pod.uid
        or (workloads and consumer.resource == "podgroups" and _is_group(consumer.name, consumer.api_group, pod))
        for consumer in claim.status.reserved_for
    )


def _is_group(name: str, group: str, pod: Pod) -> bool:
    """Return whether the name is that of the pod's group. `group` is an API group, with or without version."""
    mine = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None
    return mine == name and group.partition("/")[0] == "scheduling.k8s.io"
