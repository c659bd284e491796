"""A pending pod with everything that decides where it can run: a value, created for each attempt."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import msgspec

from devlet.control.scheduler import claim_checks, extended_resources, fit
from devlet.control.scheduler.extended_resources import Classes, ExtendedClaim
from devlet.control.scheduler.fit import NodeView, PodNeeds
from devlet.objects.identifiers import ResourceName
from devlet.objects.pods.claims import is_reserved_for
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod

__all__ = ["Subject", "read_subject"]

GetClaim = Callable[[str, str], ResourceClaim | None]


@dataclass(frozen=True, slots=True)
class Subject:
    """`extended` are the resources that DRA provides, through `classes`, on nodes that do not offer them."""

    pod: Pod
    needs: PodNeeds
    claims: tuple[ResourceClaim, ...] = ()
    extended: frozenset[ResourceName] = frozenset()
    classes: Classes | None = None

    @property
    def node(self) -> str:
        """The pod's node if another scheduler has placed it; empty otherwise."""
        return self.pod.spec.node_name

    @property
    def waiting(self) -> list[ResourceClaim]:
        """The claims that are not allocated yet."""
        return [claim for claim in self.claims if claim.status.allocation is None]

    @property
    def allocated(self) -> list[ResourceClaim]:
        return [claim for claim in self.claims if claim.status.allocation is not None]

    @property
    def unreserved(self) -> list[ResourceClaim]:
        """The allocated claims that are not reserved for the pod."""
        return [claim for claim in self.allocated if not is_reserved_for(claim, self.pod)]

    @property
    def reserved(self) -> list[ResourceClaim]:
        return [claim for claim in self.allocated if is_reserved_for(claim, self.pod)]

    @property
    def kind(self) -> Hashable:
        """A value that is equal for pods that fit on the same nodes, apart from pod affinity."""
        needs = self.needs
        return (
            frozenset(needs.amounts.items()),
            needs.ports,
            needs.choice,
            tuple(msgspec.json.encode(claim.spec) for claim in self.waiting),
            tuple((claim.uid, claim.metadata.resource_version) for claim in self.allocated),
            tuple(self.is_only_user(claim) for claim in self.allocated),
            self.node,
            self.extended and tuple(msgspec.json.encode(each.resources) for each in self.pod.containers),
        )

    def is_only_user(self, claim: ResourceClaim) -> bool:
        """Return True if no other pod uses the claim, so that its devices may be freed for this one."""
        return all(each.uid == self.pod.uid for each in claim.status.reserved_for)

    def with_claims(self, claims: tuple[ResourceClaim, ...]) -> "Subject":
        """Return the subject with other claims in place of its own."""
        return replace(self, claims=claims)

    def provided_on(self, node: NodeView) -> frozenset[ResourceName]:
        """Return the extended resources that DRA provides on the node."""
        return extended_resources.provided(self.extended, node.allocatable) if self.extended else self.extended

    def extended_claim(self, provided: frozenset[ResourceName]) -> ExtendedClaim | None:
        return extended_resources.extended_claim(self.pod, provided, self.classes or {})


def read_subject(pod: Pod, get_claim: GetClaim, classes: Classes) -> Subject | str:
    """Read a pod with its claims. Return why the claims are not ready, if so. InvalidInput names a field of the pod
    that cannot be read."""
    needs = fit.needs_of(pod)
    claims = claim_checks.resolve(pod, get_claim)
    if isinstance(claims, str):
        return claims
    extended = extended_resources.wanted(needs.amounts, classes) if classes and not pod.spec.node_name else frozenset()
    return Subject(pod, needs, tuple(claims), extended, classes)
