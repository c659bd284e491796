from dataclasses import dataclass, field

import pytest

from devlet.control.claims.pod_needs import is_surplus, missing, recorded_name, unreserved
from devlet.objects.claims.from_template import ENTRY_ANNOTATION, EXTENDED_ANNOTATION
from devlet.objects.types.claim import AllocationResult, ConsumerReference, ResourceClaim, ResourceClaimStatus
from devlet.objects.types.meta import ObjectMeta, OwnerReference
from devlet.objects.types.pod import (
    ExtendedResourceClaimStatus,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
)

GPU = PodResourceClaim(name="gpu", resource_claim_template_name="t")
NAMED = PodResourceClaim(name="named", resource_claim_name="shared")
NEITHER = PodResourceClaim(name="neither")


@dataclass
class Claims:
    found: dict[str, ResourceClaim] = field(default_factory=dict)

    def get(self, name: str, namespace: str = "") -> ResourceClaim | None:
        return self.found.get(name) if namespace == "ns" else None


def claims(*found: ResourceClaim) -> Claims:
    return Claims({claim.name: claim for claim in found})


def pod(
    *entries: PodResourceClaim, node: str = "", phase: str = "Pending", extended: str = "", **recorded: str | None
) -> Pod:
    statuses = tuple(PodResourceClaimStatus(name=e, resource_claim_name=c) for e, c in recorded.items())
    return Pod(
        metadata=ObjectMeta(name="train", namespace="ns", uid="u1"),
        spec=PodSpec(resource_claims=entries, node_name=node),
        status=PodStatus(
            phase=phase,
            resource_claim_statuses=statuses,
            extended_resource_claim_status=ExtendedResourceClaimStatus(resource_claim_name=extended)
            if extended
            else None,
        ),
    )


def claim(
    name: str,
    owner: str = "u1",
    entry: str = "gpu",
    *consumers: str,
    allocated: bool = False,
    deleting: bool = False,
    extended: bool = False,
) -> ResourceClaim:
    reference = OwnerReference(api_version="v1", kind="Pod", name="train", uid=owner, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            annotations={EXTENDED_ANNOTATION: "true"} if extended else {ENTRY_ANNOTATION: entry} if entry else {},
            owner_references=(reference,) if owner else (),
            deletion_timestamp="2025-01-01T00:00:00Z" if deleting else None,
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult() if allocated else None,
            reserved_for=tuple(ConsumerReference(resource="pods", name="p", uid=uid) for uid in consumers),
        ),
    )


@pytest.mark.spec("DA-6.1b")
def test_entries_of_templates_are_missing_until_a_claim_of_the_pod_is_recorded_for_them() -> None:
    assert missing(pod(GPU, NAMED), claims()) == [GPU]
    assert missing(pod(GPU, gpu="c"), claims()) == [GPU]
    assert missing(pod(GPU, gpu="c"), claims(claim("c", "another-pod"))) == [GPU]
    assert missing(pod(GPU, gpu="c"), claims(claim("c"))) == []
    assert missing(pod(GPU, gpu=None), claims()) == []


def test_an_invalid_entry_counts_as_missing_so_that_it_is_reported() -> None:
    assert missing(pod(NEITHER), claims()) == [NEITHER]


def test_nothing_is_missing_for_a_pod_that_will_not_start() -> None:
    assert missing(pod(GPU, phase="Failed"), claims()) == []
    assert unreserved(pod(NAMED, node="n", phase="Failed"), claims(claim("shared", "", "", allocated=True))) == []


@pytest.mark.spec("DA-6.1g")
def test_a_pod_with_a_node_lacks_reservations_of_its_allocated_claims() -> None:
    found = claim("shared", "", "", "other", allocated=True)
    assert unreserved(pod(NAMED, node="n"), claims(found)) == [found]
    assert unreserved(pod(NAMED), claims(found)) == []
    for enough in (
        claim("shared", "", "", "u1", allocated=True),
        claim("shared", "", ""),
        claim("shared", "", "", allocated=True, deleting=True),
    ):
        assert unreserved(pod(NAMED, node="n"), claims(enough)) == []


@pytest.mark.spec("DA-6.1g")
def test_a_claim_of_two_entries_is_reserved_once_and_one_of_another_pod_never() -> None:
    shared = claim("shared", "", "", allocated=True)
    twice = PodResourceClaim(name="again", resource_claim_name="shared")
    assert unreserved(pod(NAMED, twice, node="n"), claims(shared)) == [shared]
    assert unreserved(pod(GPU, node="n", gpu="c"), claims(claim("c", "another-pod", allocated=True))) == []
    assert unreserved(pod(GPU, NEITHER, node="n"), claims()) == []


def test_the_recorded_name_of_an_entry_may_be_missing() -> None:
    assert recorded_name(pod(GPU, gpu="c"), "gpu") == "c"
    assert recorded_name(pod(GPU, gpu=None), "gpu") is None and recorded_name(pod(GPU), "gpu") is None


@pytest.mark.spec("DA-6.1c")
def test_a_claim_is_surplus_if_its_entry_has_another_claim_of_the_pod() -> None:
    mine, twin = claim("c"), claim("twin")
    assert is_surplus(twin, pod(GPU, gpu="c"), claims(mine, twin))
    assert not is_surplus(mine, pod(GPU, gpu="c"), claims(mine, twin))
    assert not is_surplus(twin, pod(GPU), claims(mine, twin))
    assert not is_surplus(twin, pod(GPU, gpu="c"), claims(twin))
    assert not is_surplus(twin, pod(GPU, gpu="c"), claims(claim("c", "another-pod"), twin))
    assert not is_surplus(twin, pod(GPU, gpu="c"), claims(claim("c", deleting=True), twin))
    assert not is_surplus(claim("twin", "u1", ""), pod(GPU, gpu="c"), claims(mine))
    assert not is_surplus(claim("twin", "another-pod"), pod(GPU, gpu="c"), claims(mine))


def test_a_claim_for_extended_resources_is_surplus_if_its_pod_has_a_node_and_does_not_use_it() -> None:
    left = claim("left", extended=True)
    assert is_surplus(left, pod(node="n1", extended="other"), claims(left))
    assert is_surplus(left, pod(node="n1"), claims(left))
    assert not is_surplus(left, pod(node="n1", extended="left"), claims(left))
    assert not is_surplus(left, pod(), claims(left))  # its pod's status may be written next
    assert not is_surplus(claim("left", "another-pod", extended=True), pod(node="n1"), claims(left))
