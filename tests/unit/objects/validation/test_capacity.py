from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects.documents import Document
from devlet.objects.validation import capacity
from devlet.objects.validation.field_errors import duplicate, forbidden, invalid, required, too_many

P = "c.requestPolicy"
V, R = f"{P}.validValues", f"{P}.validRange"


def check(policy: Document | None, shared: bool = True) -> list[Cause]:
    members = {"value": "10Gi"} if policy is None else {"value": "10Gi", "requestPolicy": policy}
    return list(capacity.check(members, "c", shared))


def values(*items: str, default: str) -> list[Cause]:
    return check({"default": default, "validValues": list(items)})


def between(default: str, **bounds: Any) -> list[Cause]:
    return check({"default": default, "validRange": bounds})


@pytest.mark.parametrize(
    "policy",
    [
        None,
        {},
        {"default": "1Gi"},
        {"default": "1Gi", "validValues": ["1Gi"]},
        {"default": "2Gi", "validValues": ["1Gi", "2Gi", "10Gi"]},
        {"default": "1Gi", "validRange": {"min": "1Gi"}},
        {"default": "3Gi", "validRange": {"min": "1Gi", "max": "9Gi", "step": "2Gi"}},
    ],
)
def test_a_good_policy_is_accepted(policy: Document | None) -> None:
    assert check(policy) == []


@pytest.mark.spec("AL-2.23")
def test_a_policy_needs_a_device_that_is_shared() -> None:
    assert check({"default": "1"}, shared=False) == [forbidden(P, "allowMultipleAllocations must be true")]


@pytest.mark.spec("AL-2.23")
@pytest.mark.parametrize(
    ("policy", "cause"),
    [
        (
            {"default": "1Gi", "validValues": ["1Gi"], "validRange": {"min": "1Gi"}},
            forbidden(
                P, 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
            ),
        ),
        ({"validValues": ["1Gi"]}, required(f"{P}.default", "required when validValues is defined")),
        ({"validRange": {"min": "1Gi"}}, required(f"{P}.default", "required when validRange is defined")),
        ({"default": "1Gi", "validRange": {}}, required(f"{R}.min", "required when validRange is defined")),
    ],
)
def test_a_policy_is_one_of_two_and_has_a_default(policy: Document, cause: Cause) -> None:
    assert check(policy) == [cause]


@pytest.mark.spec("AL-2.23")
def test_values_are_sorted_and_different_and_within_the_capacity() -> None:
    assert values("1Gi", "1024Mi", default="1Gi") == [duplicate(f"{V}[1]", "1073741824")]
    assert values("2Gi", "1Gi", default="1Gi") == [
        invalid(f"{V}[1]", "1Gi", "values must be sorted in ascending order")
    ]
    assert values("20Gi", default="1Gi") == [
        invalid(f"{V}[0]", "20Gi", "option is larger than capacity value: 10Gi"),
        invalid(V, "1Gi", "default value is not valid according to the requestPolicy"),
    ]
    assert values(*(str(i) for i in range(11)), default="1") == [too_many(V, 11, 10)]


@pytest.mark.spec("AL-2.23")
@pytest.mark.parametrize(
    ("default", "bounds", "causes"),
    [
        (
            "2Gi",
            {"min": "20Gi", "max": "1Gi"},
            [
                invalid(f"{R}.min", "20Gi", "min is larger than capacity value: 10Gi"),
                invalid(f"{R}.min", "2Gi", "default is less than min: 20Gi"),
                invalid(f"{R}.max", "20Gi", "min is larger than max: 1Gi"),
                invalid(f"{R}.max", "2Gi", "default is more than max: 1Gi"),
            ],
        ),
        (
            "1Gi",
            {"min": "1Gi", "max": "20Gi"},
            [invalid(f"{R}.max", "20Gi", "max is larger than capacity value: 10Gi")],
        ),
        (
            "2Gi",
            {"min": "1Gi", "max": "10Gi", "step": "2Gi"},
            [
                invalid(f"{R}.step", "2Gi", "value is not a multiple of a given step (2Gi) from (1Gi)"),
                invalid(f"{R}.step", "10Gi", "value is not a multiple of a given step (2Gi) from (1Gi)"),
            ],
        ),
        (
            "1Gi",
            {"min": "1Gi", "step": "10Gi"},
            [invalid(f"{R}.step", "10Gi", "one step 11Gi is larger than capacity value: 10Gi")],
        ),
    ],
)
def test_a_range_is_consistent(default: str, bounds: Document, causes: list[Cause]) -> None:
    assert between(default, **bounds) == causes


@pytest.mark.spec("AL-2-gap.1")
@pytest.mark.parametrize("step", ["0", "-1Gi"])
def test_a_step_is_positive(step: str) -> None:
    assert between("1Gi", min="1Gi", step=step) == [invalid(f"{R}.step", step, "must be greater than zero")]


@pytest.mark.parametrize("policy", [{"default": "1", "validRange": {"min": "x"}}, {"validValues": ["x"]}])
def test_an_invalid_quantity_is_a_cause(policy: Document) -> None:
    assert any("must be a quantity" in cause.message for cause in check(policy))
    assert [cause.field for cause in capacity.check({"value": "x"}, "c", True)] == ["c.value"]
