from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects.documents import Document
from devlet.objects.validation import pod_update
from devlet.objects.validation.field_errors import duplicate, forbidden, invalid, required

TOLERATION: Document = {"key": "a", "operator": "Exists", "effect": "NoExecute"}
CONTAINER: Document = {
    "name": "c",
    "image": "busybox:1",
    "resources": {"requests": {"a.io/gpu": "1"}, "limits": {"a.io/gpu": "1"}},
}
SPEC: Document = {
    "containers": [CONTAINER],
    "initContainers": [{"name": "i", "image": "busybox:1"}],
    "activeDeadlineSeconds": 100,
    "tolerations": [TOLERATION],
    "terminationGracePeriodSeconds": 30,
    "schedulingGates": [{"name": "g"}],
    "resourceClaims": [{"name": "claim", "resourceClaimName": "x"}],
}


def update(old: Document = SPEC, **changes: Any) -> list[Cause]:
    spec = {member: value for member, value in {**old, **changes}.items() if value is not None}
    return list(pod_update.check({"spec": spec}, {"spec": old}))


@pytest.mark.spec("KA-7.3.1")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"containers": [{**CONTAINER, "image": "busybox:2"}]},
        {"initContainers": [{"name": "i", "image": "other"}]},
        {"activeDeadlineSeconds": 50},
        {"tolerations": [TOLERATION, {**TOLERATION, "key": "b"}]},
        {"tolerations": [{**TOLERATION, "tolerationSeconds": 5}]},
        {"schedulingGates": []},
    ],
)
def test_a_little_may_change(changes: Document) -> None:
    assert update(**changes) == []


@pytest.mark.spec("KA-7.3.1")
@pytest.mark.parametrize(
    "changes",
    [
        {"nodeName": "n"},
        {"hostname": "h"},
        {"containers": [{**CONTAINER, "name": "other"}]},
        {"containers": [{**CONTAINER, "resources": {}}]},
        {"terminationGracePeriodSeconds": 31},
        {"resourceClaims": []},
    ],
)
def test_nothing_else_may_change(changes: Document) -> None:
    (cause,) = update(**changes)
    assert (cause.reason, cause.field) == ("FieldValueForbidden", "spec")
    assert cause.message.startswith(
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    )
    assert cause.message.endswith(f"changed: spec.{next(iter(changes))}")


@pytest.mark.spec("KA-7.3.1")
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        (
            {"containers": [CONTAINER, CONTAINER]},
            forbidden("spec.containers", "pod updates may not add or remove containers"),
        ),
        ({"containers": [{**CONTAINER, "image": ""}]}, required("spec.containers[0].image")),
        (
            {"activeDeadlineSeconds": 101},
            invalid("spec.activeDeadlineSeconds", 101, "must be less than or equal to previous value"),
        ),
        (
            {"activeDeadlineSeconds": None},
            invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value"),
        ),
        (
            {"tolerations": []},
            forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"),
        ),
        (
            {"schedulingGates": [{"name": "g"}, {"name": "h"}]},
            forbidden("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate 'h'"),
        ),
    ],
)
def test_what_may_change_changes_in_one_direction(changes: Document, cause: Cause) -> None:
    assert update(**changes) == [cause]


@pytest.mark.spec("KA-7.3.1")
def test_a_negative_grace_period_becomes_one_second() -> None:
    negative = {**SPEC, "terminationGracePeriodSeconds": -1}
    assert update(negative, terminationGracePeriodSeconds=1) == []
    assert len(update(negative, terminationGracePeriodSeconds=2)) == 1


def status(**members: Any) -> list[Cause]:
    return list(pod_update.check_status({"status": members}, {"spec": SPEC}))


S, E = "status.resourceClaimStatuses", "status.extendedResourceClaimStatus"


@pytest.mark.spec("KA-7.3.2")
def test_a_claim_status_belongs_to_a_claim_of_the_pod() -> None:
    good = {"name": "claim", "resourceClaimName": "x-1"}
    assert status(resourceClaimStatuses=[good]) == status(resourceClaimStatuses=[{"name": "claim"}]) == []
    assert status(resourceClaimStatuses=[{"name": "other"}]) == [
        invalid(f"{S}[0].name", "other", "must match the name of an entry in `spec.resourceClaims`")
    ]
    assert status(resourceClaimStatuses=[good, good]) == [duplicate(f"{S}[1]", "claim")]
    (cause,) = status(resourceClaimStatuses=[{**good, "resourceClaimName": "A"}])
    assert cause.field == f"{S}[0].resourceClaimName"


MAPPING: Document = {"containerName": "c", "resourceName": "a.io/gpu", "requestName": "r"}


@pytest.mark.spec("KA-7.3.2")
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"resourceClaimName": ""}, required(f"{E}.resourceClaimName")),
        ({"requestMappings": []}, required(f"{E}.requestMappings", "at least one request mapping is required")),
        ({"requestMappings": [MAPPING, MAPPING]}, duplicate(f"{E}.requestMappings[1]", "c/a.io/gpu/r")),
        (
            {"requestMappings": [{**MAPPING, "containerName": "x"}]},
            invalid(
                f"{E}.requestMappings[0].containerName",
                "x",
                "must match the name of an entry in spec.initContainers.name or spec.containers.name",
            ),
        ),
        (
            {"requestMappings": [{**MAPPING, "resourceName": "a.io/nic"}]},
            invalid(f"{E}.requestMappings[0].resourceName", "a.io/nic", "must be a resource that container c requests"),
        ),
        ({"requestMappings": [{**MAPPING, "requestName": ""}]}, required(f"{E}.requestMappings[0].requestName")),
    ],
)
def test_the_extended_resource_claim_maps_what_containers_request(changes: Document, cause: Cause) -> None:
    good = {"resourceClaimName": "x", "requestMappings": [MAPPING]}
    assert status(extendedResourceClaimStatus=good) == []
    assert status(extendedResourceClaimStatus={**good, **changes}) == [cause]


@pytest.mark.spec("KA-7.3.2")
def test_leaving_a_final_phase_is_worth_a_warning() -> None:
    done, running = {"status": {"phase": "Succeeded"}}, {"status": {"phase": "Running"}}
    assert pod_update.status_warnings(done, running) == pod_update.status_warnings(done, done) == []
    (warning,) = pod_update.status_warnings(running, done)
    assert "Succeeded" in warning and "Running" in warning
