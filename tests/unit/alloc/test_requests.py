from typing import Any

import pytest

from devlet.alloc import Rules
from devlet.alloc.requests import Reader, Request, read_request
from devlet.errors import InvalidInput
from tests.support.allocation.desk import Desk


def read(request: Any, rules: Rules = Rules(), **more: Any) -> Request:
    desk = Desk(claims=[[request]], rules=rules, **more)
    allocator, claim = desk.allocator, desk.claims[0]
    reader = Reader(desk.inventory, allocator.selectors, allocator.features, rules)
    return read_request(claim, claim.spec.devices.requests[0], reader)


def refused(text: str) -> Any:
    return pytest.raises(InvalidInput, match=f"^claim default/claim-0, {text}")


def test_a_request_has_one_alternative() -> None:
    request = read("r0 2 a lanes:3 ~NoExecute kind=gpu")
    (only,) = request.alternatives
    assert (request.name, request.is_list) == ("r0", False)
    assert (only.name, only.full_name, only.is_sub) == ("r0", "r0", False)
    assert (only.count, only.is_all, only.admin_access) == (2, False, False)
    assert [(name, str(amount)) for name, amount in only.capacity] == [("lanes", "3")]
    assert [each.effect for each in only.tolerations] == ["NoExecute"]
    assert only.selectors.of_class == ('device.driver == "a.example.com"',)
    assert only.selectors.of_request == ('device.attributes["a.example.com"].kind == "gpu"',)


def test_a_list_has_its_own_names_even_if_it_has_one_alternative() -> None:
    request = read({"r0": ["s0 all a"]})
    (only,) = request.alternatives
    assert request.is_list and only.is_sub and only.is_all
    assert (only.name, only.full_name) == ("s0", "r0/s0")


@pytest.mark.spec("DA-3.4a")
def test_an_unknown_class_is_an_error_that_names_claim_request_and_class() -> None:
    with refused('request r0: could not retrieve device class c: deviceclass.resource.k8s.io "c" not found$'):
        read("r0 c")
    with refused("request s1: could not retrieve device class c"):
        read({"r0": ["s0 a", "s1 c"]})


@pytest.mark.spec("DA-3.4b")
@pytest.mark.parametrize(
    ("request_", "without", "text"),
    [
        ({"r0": ["s0 a"]}, "PrioritizedList", "request r0: has subrequests, but the DRAPrioritizedList feature is dis"),
        ("r0 a lanes:1", "ConsumableCapacity", "request r0: has capacity requests, but the DRAConsumableCapacity fea"),
        ({"r0": ["s0 a lanes:1"]}, "ConsumableCapacity", "subrequest s0: has capacity requests, but"),
        ("r0 a admin", "AdminAccess", "request r0: admin access is requested, but the feature is disabled"),
    ],
)
def test_what_needs_a_feature_that_is_off_is_an_error(request_: Any, without: str, text: str) -> None:
    with refused(text):
        read(request_, without=[without])


@pytest.mark.spec("DA-3.4c")
@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ("r0 -", "request r0: missing device class name"),
        ("r0 mode:Some a", "request r0: unsupported count mode Some"),
        ("r0 a if nothing", "request r0, selector #0: CEL expression empty"),
        ("r0 a lanes:much", "request r0: capacity lanes: 'much' is not a quantity: "),
    ],
)
def test_an_unknown_mode_is_an_error(request_: str, text: str) -> None:
    for rules in (Rules(), Rules.reference()):
        with refused(text):
            read(request_, rules)


def test_a_request_must_be_of_a_known_kind() -> None:
    desk = Desk(claims=[["r0 a"]])
    desk.document["claims"][0]["spec"]["devices"]["requests"] = [{"name": "r0"}]
    with refused("request r0: neither exactly nor firstAvailable is set"):
        Desk(document=desk.document).ask()


@pytest.mark.spec("DA-11.12")
def test_a_negative_amount_is_refused_unless_the_reference_is_asked_for() -> None:
    with refused("request r0: capacity lanes: -1 is negative, ask for zero or more"):
        read("r0 a lanes:-1")
    assert str(read("r0 a lanes:-1", Rules.reference()).alternatives[0].capacity[0][1]) == "-1"


# Counts that make no sense


@pytest.mark.spec("DA-3.4d")
@pytest.mark.parametrize("count", [33, 10**12, 2**70])
@pytest.mark.parametrize("rules", [Rules(), Rules.reference()])
def test_more_devices_than_a_claim_can_have_are_refused_at_once(count: int, rules: Rules) -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": 40}], claims=[[f"r0 {count} a"]], rules=rules)
    text = f"claim default/claim-0: number of requested devices {count} exceeds the claim limit of 32"
    with pytest.raises(InvalidInput, match=text):
        desk.ask()


@pytest.mark.spec("DA-3.4d")
def test_the_smallest_alternative_decides_whether_a_claim_is_too_large() -> None:
    slices = [{"pool": "p1", "devices": 40}]
    assert Desk(slices=slices, claims=[[{"r0": ["s0 1000000000000 a", "s1 a"]}]]).ask() == [["r0/s1 p1/d0"]]
    with pytest.raises(InvalidInput, match="number of requested devices 34 exceeds"):
        Desk(slices=slices, claims=[[{"r0": ["s0 99 a", "s1 33 a"]}, "r1 a"]]).ask()


@pytest.mark.parametrize("rules", [Rules(), Rules.reference()])
def test_a_count_below_zero_is_refused_and_zero_needs_nothing(rules: Rules) -> None:
    desk = Desk(claims=[["r0 0 a"]], rules=rules)
    assert desk.ask() == [[]]
    desk.document["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = -1
    with refused("request r0: count -1 is negative"):
        Desk(document=desk.document, rules=rules).ask()
