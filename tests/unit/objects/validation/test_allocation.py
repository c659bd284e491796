from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import allocation
from devlet.objects.validation.field_errors import duplicate, invalid, not_supported, required, too_many

SPEC = {"devices": {"requests": [{"name": "r"}, {"name": "any", "firstAvailable": [{"name": "sub"}]}]}}
RESULT: Document = {"request": "r", "driver": "d.example.com", "pool": "p/q", "device": "gpu-0"}
CONFIG: Document = {"source": "FromClass", "opaque": {"driver": "d", "parameters": {}}}
UID = "8d8b3c9e-6c1f-4d4c-a7a5-0f6a1cbd9d1c"
NOT_A_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
R, C = "a.devices.results", "a.devices.config"


def check(**members: Any) -> list[Cause]:
    return list(allocation.check(members, "a", SPEC))


def result(**changes: Any) -> list[Cause]:
    return check(devices={"results": [{**RESULT, **changes}]})


def config(**changes: Any) -> list[Cause]:
    return check(devices={"config": [{**CONFIG, **changes}]})


@pytest.mark.spec("AL-2.15")
def test_a_full_allocation_is_accepted() -> None:
    full = {
        **RESULT,
        "request": "any/sub",
        "shareID": UID,
        "consumedCapacity": {"memory": "0"},
        "bindingConditions": ["a"],
        "bindingFailureConditions": ["b"],
        "tolerations": [{"operator": "Exists"}],
    }
    selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}
    configs = [{**CONFIG, "requests": ["any"]}] * 64
    assert check(devices={"results": [full] * 32, "config": configs}, nodeSelector=selector) == []


@pytest.mark.spec("AL-2.15")
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"request": "other"}, invalid(f"{R}[0].request", "other", NOT_A_REQUEST)),
        ({"driver": ""}, required(f"{R}[0].driver")),
        ({"driver": "a_b"}, invalid(f"{R}[0].driver", "a_b", names.dns_subdomain("a_b")[0])),
        ({"pool": ""}, required(f"{R}[0].pool")),
        ({"pool": "A"}, invalid(f"{R}[0].pool", "A", names.dns_subdomain("A")[0])),
        ({"device": ""}, required(f"{R}[0].device")),
        ({"device": "A"}, invalid(f"{R}[0].device", "A", names.dns_label("A")[0])),
        ({"shareID": "x"}, invalid(f"{R}[0].shareID", "x", "error validating uid: invalid UUID length: 1")),
        (
            {"consumedCapacity": {"m": "-1"}},
            invalid(f"{R}[0].consumedCapacity[m]", "-1", "must be greater than or equal to 0"),
        ),
    ],
)
def test_a_bad_result_is_refused(changes: Document, cause: Cause) -> None:
    assert result(**changes) == [cause]


@pytest.mark.spec("AL-2.15")
@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"source": ""}, required(f"{C}[0].source")),
        ({"source": "FromMe"}, not_supported(f"{C}[0].source", "FromMe", ("FromClaim", "FromClass"))),
        ({"opaque": None}, required(f"{C}[0].opaque")),
        ({"requests": ["other"]}, invalid(f"{C}[0].requests[0]", "other", NOT_A_REQUEST)),
        ({"requests": ["r", "r"]}, duplicate(f"{C}[0].requests[1]", "r")),
    ],
)
def test_bad_configuration_is_refused(changes: Document, cause: Cause) -> None:
    assert config(**changes) == [cause]


@pytest.mark.spec("AL-2.15")
def test_an_allocation_has_limits() -> None:
    assert check(devices={"results": [{}] * 33}) == [too_many(R, 33, 32)]
    assert check(devices={"config": [{}] * 65}) == [too_many(C, 65, 64)]


@pytest.mark.spec("AL-2.15")
def test_the_node_selector_is_checked() -> None:
    expected = required("a.nodeSelector.nodeSelectorTerms", "must have at least one node selector term")
    assert check(nodeSelector={}) == [expected]
