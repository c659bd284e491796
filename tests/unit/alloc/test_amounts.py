import pytest

from devlet.alloc.amounts import amounts
from devlet.objects.documents import Document, view
from devlet.objects.types.slice import Device
from devlet.objects.values.quantity import Quantity
from tests.support.allocation.desk import Desk

DRIVER = "a.example.com"


def device(value: str, policy: Document | None = None) -> Device:
    capacity = {"value": value} | ({"requestPolicy": policy} if policy else {})
    return view(Device, {"name": "d1", "capacity": {"lanes": capacity}})


def taken(device: Device, request: str | None) -> str:
    """What is taken of `lanes`, or why nothing can be."""
    requests = {} if request is None else {"lanes": Quantity.parse(request)}
    found = amounts(device, requests, DRIVER)
    return found if isinstance(found, str) else str(found[0].consumed)


RANGE = {"default": "2", "validRange": {"min": "2", "max": "8", "step": "2"}}


@pytest.mark.spec("DA-3.8a")
@pytest.mark.parametrize(
    ("policy", "request_", "amount"),
    [
        (None, None, "8"),
        (None, "3", "3"),
        ({"default": "2"}, None, "2"),
        ({"default": "2"}, "3", "3"),
        (RANGE, "1", "2"),
        (RANGE, "3", "4"),
        (RANGE, "4", "4"),
        (RANGE, "2500m", "4"),
        ({"default": "2", "validRange": {"min": "2"}}, "3", "3"),
        ({"default": "1", "validValues": ["1", "4"]}, "2", "4"),
        ({"default": "1", "validValues": ["1", "4"]}, "1", "1"),
    ],
)
def test_the_amount_follows_the_policy(policy: Document | None, request_: str | None, amount: str) -> None:
    assert taken(device("8", policy), request_) == amount


@pytest.mark.spec("DA-3.8a")
def test_amounts_in_steps_are_printed_with_a_binary_suffix() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    assert taken(device("8Gi", policy), "1500Mi") == "2Gi"


@pytest.mark.spec("DA-3.8b")
@pytest.mark.parametrize(
    ("policy", "request_", "reason"),
    [
        (RANGE, "9", "capacity lanes: 10 is more than 8, the most that one request may take"),
        ({"default": "1", "validValues": ["1", "4"]}, "5", "capacity lanes: 5 is not one of 1, 4"),
        ({"default": "3", "validRange": {"step": "2"}}, "1", "capacity lanes: 1 is not a multiple of 2 above 0"),
    ],
)
def test_what_a_policy_forbids_makes_the_device_unusable(policy: Document, request_: str, reason: str) -> None:
    assert taken(device("16", policy), request_) == reason


@pytest.mark.spec("DA-3.8b")
def test_the_default_is_always_allowed() -> None:
    assert taken(device("16", {"default": "3", "validRange": {"min": "2", "step": "2"}}), None) == "3"
    assert taken(device("16", {"default": "3", "validValues": ["2", "4"]}), None) == "3"


@pytest.mark.spec("DA-11.12")
@pytest.mark.parametrize("step", ["0", "-2", "0.0"])
@pytest.mark.parametrize("request_", [None, "1", "3"])
def test_a_step_of_zero_makes_the_device_unusable_and_no_other(step: str, request_: str | None) -> None:
    broken = {"default": "2", "validRange": {"min": "2", "step": step}}
    assert taken(device("8", broken), request_) == "capacity lanes: validRange.step must be greater than zero"
    slices = [{"pool": "p1", "devices": [f"d1 lanes:8(default=2,min=2,step={step}) shared", "d2 lanes:8"]}]
    wish = f"r0 a lanes:{request_}" if request_ else "r0 a"
    assert Desk(slices=slices, claims=[[wish]]).ask() == [["r0 p1/d2"]]


@pytest.mark.spec("DA-11.12")
def test_a_capacity_below_zero_makes_the_device_unusable() -> None:
    assert taken(device("-8"), None) == "capacity lanes: -8 is negative"
    slices = [{"pool": "p1", "devices": ["d1 lanes:-8 shared", "d2 lanes:-8", "d3 lanes:8"]}]
    assert Desk(slices=slices, claims=[["r0 a"]]).ask() == [["r0 p1/d3"]]


@pytest.mark.spec("DA-11.12")
@pytest.mark.parametrize(("published", "asked"), [("lanes", f"{DRIVER}/lanes"), (f"{DRIVER}/lanes", "lanes")])
def test_a_name_may_carry_the_drivers_domain(published: str, asked: str) -> None:
    there = view(Device, {"name": "d1", "capacity": {published: {"value": "8"}}})
    found = amounts(there, {asked: Quantity.parse("2")}, DRIVER)
    assert not isinstance(found, str)
    assert [(each.name, str(each.consumed)) for each in found] == [(published, "2")]
    assert amounts(there, {asked: Quantity.parse("2")}, DRIVER, strict=False) == f"has no capacity {asked}"


@pytest.mark.spec("DA-3.8c")
def test_a_missing_capacity_makes_the_device_unusable() -> None:
    assert amounts(device("8"), {"b.example.com/lanes": Quantity.parse("1")}, DRIVER) == (
        "has no capacity b.example.com/lanes"
    )
    assert Desk(slices=[{"pool": "p1", "devices": ["d1", "d2 lanes:1"]}], claims=[["r0 a lanes:1"]]).ask() == [
        ["r0 p1/d2"]
    ]


@pytest.mark.spec("DA-3.8d")
def test_what_is_asked_for_is_a_minimum_where_nothing_is_shared() -> None:
    slices = [{"pool": "p1", "devices": ["d1 lanes:2", "d2 lanes:4"]}]
    desk = Desk(slices=slices, claims=[["r0 a lanes:3"], ["r0 a lanes:1"]])
    assert desk.ask() == [["r0 p1/d2"], ["r0 p1/d1"]]
