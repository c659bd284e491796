from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import container_resources
from devlet.objects.validation.field_errors import duplicate, invalid, not_found, required

GPU = "example.com/gpu"


def check(**resources: Any) -> list[Cause]:
    return list(container_resources.check(resources, "r", frozenset(["a", "b"])))


@pytest.mark.parametrize(
    "resources",
    [
        {},
        {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        {"requests": {"memory": "1Gi"}},
        {"limits": {GPU: "2", "hugepages-2Mi": "4Mi"}, "requests": {GPU: "2", "hugepages-2Mi": "4Mi"}},
        {"limits": {"deviceclass.resource.kubernetes.io/gpu": 1}},
    ],
)
def test_good_resources_are_accepted(resources: Document) -> None:
    assert check(**resources) == []


@pytest.mark.parametrize(
    ("resources", "causes"),
    [
        (
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            [invalid("r.requests", "2", "must be less than or equal to cpu limit of 1")],
        ),
        (
            {"limits": {GPU: "2"}, "requests": {GPU: "1"}},
            [invalid("r.requests", "1", f"must be equal to {GPU} limit of 2")],
        ),
        (
            {"requests": {GPU: "1"}},
            [required("r.limits", "Limit must be set for non overcommitable resources")],
        ),
        (
            {"limits": {GPU: "1500m"}},
            [invalid(f"r.limits[{GPU}]", "1500m", "must be an integer")],
        ),
        ({"limits": {"cpu": "-1"}}, [invalid("r.limits[cpu]", "-1", "must be greater than or equal to 0")]),
        (
            {"limits": {"gpu": "1"}},
            [
                invalid("r.limits[gpu]", "gpu", "must be a standard resource type or fully qualified"),
                invalid("r.limits[gpu]", "gpu", "must be a standard resource for containers"),
            ],
        ),
        (
            {"limits": {"requests.a.io/gpu": "1"}},
            [
                invalid(
                    "r.limits[requests.a.io/gpu]", "requests.a.io/gpu", "doesn't follow extended resource name standard"
                )
            ],
        ),
    ],
)
def test_bad_resources_are_refused(resources: Document, causes: list[Cause]) -> None:
    assert check(**resources) == causes


def test_an_invalid_quantity_is_a_cause() -> None:
    (cause,) = check(limits={"cpu": "many"}, requests={"cpu": "1"})
    assert cause.field == "r.limits[cpu]"


NAMES = "must be one of the names in pod.spec.resourceClaims"


@pytest.mark.spec("KA-7.4")
@pytest.mark.parametrize(
    ("claims", "causes"),
    [
        ([{"name": "a"}, {"name": "b", "request": "x"}, {"name": "b", "request": "y"}], []),
        ([{"name": "c"}], [not_found("r.claims[0].name", "c", NAMES)]),
        ([{"name": ""}], [required("r.claims[0].name")]),
        ([{"name": "a"}, {"name": "a"}], [duplicate("r.claims[1]", "a")]),
        ([{"name": "a", "request": "x"}, {"name": "a", "request": "x"}], [duplicate("r.claims[1]", "a/x")]),
        ([{"name": "a", "request": "x"}, {"name": "a"}], [duplicate("r.claims[1]", "a")]),
        ([{"name": "a"}, {"name": "a", "request": "x"}], [duplicate("r.claims[1]", "a/x")]),
        ([{"name": "a", "request": "A"}], [invalid("r.claims[0].request", "A", names.dns_label("A")[0])]),
    ],
)
def test_a_container_uses_claims_of_its_pod(claims: list[Document], causes: list[Cause]) -> None:
    assert check(claims=claims) == causes


@pytest.mark.spec("KA-7.4")
def test_a_claim_reference_in_a_pod_without_claims_is_reported() -> None:
    causes = list(container_resources.check({"claims": [{"name": "a"}]}, "r", frozenset()))
    assert causes == [not_found("r.claims[0].name", "a", f"{NAMES} which is empty")]
