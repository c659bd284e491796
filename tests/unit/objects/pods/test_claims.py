"""Which claims a pod uses."""

from typing import Any

import pytest

from devlet.errors import InvalidInput, NotFound
from devlet.objects.documents import view
from devlet.objects.identifiers import ClaimName
from devlet.objects.pods.claims import PodClaim, is_made_for, is_reserved_for, pod_claims, resolve
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod


def pod(*entries: dict[str, Any], statuses: tuple[dict[str, Any], ...] = (), group: str | None = None) -> Pod:
    spec: dict[str, Any] = {"resourceClaims": [*entries]}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    metadata = {"name": "p", "namespace": "ns", "uid": "pod-uid"}
    return view(Pod, {"metadata": metadata, "spec": spec, "status": {"resourceClaimStatuses": [*statuses]}})


NAMED = {"name": "a", "resourceClaimName": "shared"}
TEMPLATED = {"name": "b", "resourceClaimTemplateName": "template"}


@pytest.mark.spec("AL-1.8")
def test_a_claim_that_is_named_needs_no_check_of_its_owner() -> None:
    assert pod_claims(pod(NAMED)) == {"a": PodClaim(ClaimName("shared"), must_be_owned=False)}


@pytest.mark.spec("AL-1.8")
def test_a_claim_from_a_template_is_found_in_the_status_and_must_be_owned() -> None:
    found = pod_claims(pod(NAMED, TEMPLATED, statuses=({"name": "b", "resourceClaimName": "p-b-x"},)))
    assert found["b"] == PodClaim(ClaimName("p-b-x"), must_be_owned=True)
    assert list(found) == ["a", "b"]


@pytest.mark.spec("AL-1.8")
def test_an_entry_for_which_no_claim_was_necessary_has_no_name() -> None:
    found = pod_claims(pod(TEMPLATED, statuses=({"name": "other", "resourceClaimName": "x"}, {"name": "b"})))
    assert found["b"].name is None


@pytest.mark.spec("AL-1.8")
def test_a_claim_that_does_not_exist_yet_is_an_error_that_says_so() -> None:
    waiting = pod(TEMPLATED)
    with pytest.raises(NotFound, match=r"^pod ns/p: claim b: ResourceClaim not created yet$"):
        resolve(waiting, waiting.spec.resource_claims[0])


@pytest.mark.spec("AL-1.8")
def test_an_entry_without_any_source_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="claim c: none of the supported fields are set"):
        pod_claims(pod({"name": "c"}))


def claim(namespace: str = "ns", owners: Any = (), reserved_for: Any = ()) -> ResourceClaim:
    metadata = {"name": "c", "namespace": namespace, "ownerReferences": [*owners]}
    return view(ResourceClaim, {"metadata": metadata, "status": {"reservedFor": [*reserved_for]}})


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pod-uid", "controller": True}
GROUP = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "name": "g",
    "uid": "group-uid",
    "controller": True,
}


@pytest.mark.spec("AL-1.8")
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (claim(owners=[OWNER]), True),
        (claim(), False),
        (claim(owners=[OWNER | {"controller": False}]), False),
        (claim(owners=[OWNER | {"uid": "other"}]), False),
        (claim("elsewhere", owners=[OWNER]), False),
        (claim(owners=[GROUP]), False),
    ],
)
def test_a_claim_is_made_for_the_pod_that_controls_it(made: ResourceClaim, expected: bool) -> None:
    assert is_made_for(made, pod(TEMPLATED, group="g")) is expected


@pytest.mark.spec("AL-1.8")
def test_with_workloads_a_claim_may_be_made_and_reserved_for_the_group_of_the_pod() -> None:
    consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "group-uid"}
    grouped = claim(owners=[GROUP], reserved_for=[consumer])
    for asked in (is_made_for, is_reserved_for):
        assert asked(grouped, pod(group="g"), workloads=True)
        assert not asked(grouped, pod(group="h"), workloads=True)
        assert not asked(grouped, pod(), workloads=True)
        assert not asked(grouped, pod(group="g"))


@pytest.mark.spec("AL-1.8")
def test_a_claim_is_reserved_for_the_pods_it_lists_by_uid() -> None:
    assert is_reserved_for(claim(reserved_for=[{"resource": "pods", "name": "p", "uid": "pod-uid"}]), pod())
    assert not is_reserved_for(claim(reserved_for=[{"resource": "pods", "name": "p", "uid": "old-uid"}]), pod())
