from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import claim
from devlet.objects.validation.field_errors import duplicate, invalid, not_supported, required, too_many
from devlet.objects.validation.selectors import accept_any

EXACTLY: Document = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
SUB: Document = {"name": "small", **EXACTLY}
R = "spec.devices.requests[0]"
NOT_A_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def check(**devices: Any) -> list[Cause]:
    return list(claim.check_spec({"devices": devices}, "spec", accept_any))


def requests(count: int) -> list[Document]:
    return [{"name": f"r{i}", "exactly": EXACTLY} for i in range(count)]


def exactly(**changes: Any) -> list[Cause]:
    return check(requests=[{"name": "r", "exactly": {**EXACTLY, **changes}}])


def test_an_empty_claim_is_accepted() -> None:
    assert check() == list(claim.check_spec({}, "spec", accept_any)) == []


def test_a_full_claim_is_accepted() -> None:
    first = [{**SUB, "name": f"s{i}"} for i in range(8)]
    opaque = {"driver": "d.example.com", "parameters": {"a": 1}}
    causes = check(
        requests=[*requests(31), {"name": "any", "firstAvailable": first}],
        constraints=[{"requests": ["r0", "any", "any/s1"], "matchAttribute": "d.example.com/numa"}] * 32,
        config=[{"requests": ["any/s0"], "opaque": opaque}] * 32,
    )
    assert causes == []


ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"


@pytest.mark.spec("AL-2.03")
@pytest.mark.parametrize(
    ("request_", "cause"),
    [
        ({"name": "r"}, required(R, ONE_OF)),
        ({"name": "r", "firstAvailable": []}, required(R, ONE_OF)),
        (
            {"name": "r", "exactly": EXACTLY, "firstAvailable": [SUB]},
            invalid(R, None, f"{ONE_OF}, but multiple fields are set"),
        ),
    ],
)
def test_a_request_has_exactly_one_of_its_two_forms(request_: Document, cause: Cause) -> None:
    assert check(requests=[request_]) == [cause]


@pytest.mark.spec("AL-2.04")
def test_a_name_is_used_once() -> None:
    assert check(requests=[*requests(2), *requests(1)]) == [duplicate("spec.devices.requests[2]", "r0")]


@pytest.mark.spec("AL-2.04")
def test_the_name_of_a_subrequest_is_used_once() -> None:
    causes = check(requests=[{"name": "r", "firstAvailable": [SUB, SUB]}])
    assert causes == [duplicate(f"{R}.firstAvailable[1]", "small")]


@pytest.mark.parametrize("name", ["", "A", "a.b", "x" * 64])
def test_the_name_of_a_request_is_a_dns_label(name: str) -> None:
    causes = check(requests=[{"name": name, "exactly": EXACTLY}])
    assert causes == [invalid(f"{R}.name", name, error) for error in names.dns_label(name)] != []


@pytest.mark.spec("AL-2.05")
@pytest.mark.parametrize("mode", ["", "Some"])
def test_an_unknown_allocation_mode_is_refused(mode: str) -> None:
    expected = not_supported(f"{R}.exactly.allocationMode", mode, ("All", "ExactCount"))
    assert exactly(allocationMode=mode) == [expected]


@pytest.mark.spec("AL-2.06")
@pytest.mark.parametrize("count", [0, -1])
def test_an_exact_count_is_positive(count: int) -> None:
    assert exactly(count=count) == [invalid(f"{R}.exactly.count", count, "must be greater than zero")]


@pytest.mark.spec("AL-2.06")
def test_all_devices_have_no_count() -> None:
    expected = invalid(f"{R}.exactly.count", 2, "must not be specified when allocationMode is 'All'")
    assert exactly(allocationMode="All", count=2) == [expected]
    assert exactly(allocationMode="All", count=0) == []


@pytest.mark.spec("AL-2.06")
def test_a_count_has_no_upper_bound() -> None:
    assert exactly(count=33) == []


@pytest.mark.spec("AL-2.07")
def test_a_device_class_is_required_and_a_dns_subdomain() -> None:
    assert exactly(deviceClassName="") == [required(f"{R}.exactly.deviceClassName")]
    (shape,) = names.dns_subdomain("A_b")
    assert exactly(deviceClassName="A_b") == [invalid(f"{R}.exactly.deviceClassName", "A_b", shape)]


@pytest.mark.spec("AL-2.08")
def test_selectors_are_checked_in_both_forms() -> None:
    assert exactly(selectors=[{}]) == [required(f"{R}.exactly.selectors[0].cel")]
    causes = check(requests=[{"name": "r", "firstAvailable": [{**SUB, "selectors": [{}]}]}])
    assert causes == [required(f"{R}.firstAvailable[0].selectors[0].cel")]


@pytest.mark.spec("AL-2.10")
def test_tolerations_are_checked() -> None:
    assert exactly(tolerations=[{}]) == [required(f"{R}.exactly.tolerations[0].operator")]


C = "spec.devices.constraints[0]"


@pytest.mark.spec("AL-2.11")
@pytest.mark.parametrize("member", ["matchAttribute", "distinctAttribute"])
@pytest.mark.parametrize("attribute", ["", "nodomain", "a/b/c", "a.io/"])
def test_the_attribute_of_a_constraint_is_fully_qualified(member: str, attribute: str) -> None:
    causes = check(constraints=[{member: attribute}])
    expected = [invalid(f"{C}.{member}", attribute, e) for e in names.fully_qualified_device_name(attribute)]
    assert causes == expected != []


@pytest.mark.spec("AL-2.11")
def test_a_constraint_constrains_something() -> None:
    assert check(constraints=[{}]) == [
        required(C, 'exactly one of "matchAttribute" or "distinctAttribute" is required')
    ]


@pytest.mark.spec("AL-2.11")
def test_a_constraint_with_both_attributes_is_accepted() -> None:
    assert check(constraints=[{"matchAttribute": "a.io/x", "distinctAttribute": "a.io/y"}]) == []


@pytest.mark.spec("AL-2.12")
@pytest.mark.parametrize(
    ("reference", "details"),
    [
        ("other", [NOT_A_REQUEST]),
        ("any/other", [NOT_A_REQUEST]),
        ("any/small/x", [NOT_A_REQUEST]),
        ("r0/small", [NOT_A_REQUEST]),
    ],
)
def test_a_reference_names_a_request_of_the_claim(reference: str, details: list[str]) -> None:
    known = [*requests(1), {"name": "any", "firstAvailable": [SUB]}]
    opaque = {"driver": "d", "parameters": {}}
    causes = check(
        requests=known,
        constraints=[{"requests": [reference], "matchAttribute": "a.io/x"}],
        config=[{"requests": [reference], "opaque": opaque}],
    )
    paths = (f"{C}.requests[0]", "spec.devices.config[0].requests[0]")
    assert causes == [invalid(path, reference, detail) for path in paths for detail in details]


@pytest.mark.spec("AL-2.12")
def test_a_malformed_reference_breaks_two_rules() -> None:
    (shape,) = names.dns_label("A!")
    path = f"{C}.requests[0]"
    causes = check(constraints=[{"requests": ["A!"], "matchAttribute": "a.io/x"}])
    assert causes == [invalid(path, "A!", shape), invalid(path, "A!", NOT_A_REQUEST)]


@pytest.mark.spec("AL-2.12")
def test_a_reference_occurs_once() -> None:
    causes = check(requests=requests(1), constraints=[{"requests": ["r0", "r0"], "matchAttribute": "a.io/x"}])
    assert causes == [duplicate(f"{C}.requests[1]", "r0")]


@pytest.mark.spec("AL-2.13")
def test_the_configuration_of_a_claim_is_checked() -> None:
    assert check(config=[{}]) == [required("spec.devices.config[0].opaque")]


@pytest.mark.spec("AL-2-gap.2")
def test_a_negative_capacity_request_is_refused() -> None:
    path = f"{R}.exactly.capacity.requests[memory]"
    causes = exactly(capacity={"requests": {"memory": "-1Gi", "cores": "2"}})
    assert causes == [invalid(path, "-1Gi", "must be greater than or equal to 0")]


@pytest.mark.spec("AL-2-gap.5")
def test_a_capacity_request_has_a_qualified_name() -> None:
    (detail,) = names.device_qualified_name("a/b/c")
    causes = exactly(capacity={"requests": {"a/b/c": "1"}})
    assert causes == [invalid(f"{R}.exactly.capacity.requests", "a/b/c", detail)]


@pytest.mark.spec("KA-7.4")
@pytest.mark.parametrize(
    ("devices", "cause"),
    [
        ({"requests": requests(33)}, too_many("spec.devices.requests", 33, 32)),
        (
            {"requests": [{"name": "r", "firstAvailable": [{}] * 9}]},
            too_many(f"{R}.firstAvailable", 9, 8),
        ),
        ({"constraints": [{}] * 33}, too_many("spec.devices.constraints", 33, 32)),
        ({"config": [{}] * 33}, too_many("spec.devices.config", 33, 32)),
        (
            {"constraints": [{"requests": ["x"] * 33, "matchAttribute": "a.io/x"}]},
            too_many(f"{C}.requests", 33, 32),
        ),
    ],
)
def test_the_elements_of_a_list_that_is_too_long_are_not_checked(devices: Document, cause: Cause) -> None:
    assert check(**devices) == [cause]
