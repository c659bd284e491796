"""That the API accepts them is tested with `strategies`; here, what else is promised."""

from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.objects.documents import Document
from devlet.objects.validation import device as rules
from devlet.objects.values.quantity import Quantity
from devlet.testing import strategy_devices as own


@given(device=own.devices())
def test_a_device_breaks_no_rule(device: Document) -> None:
    assert list(rules.check(device, "device", set(), False, None)) == []


@given(device=own.devices("mine"))
def test_a_device_can_be_named(device: Document) -> None:
    assert device["name"] == "mine"


@given(capacity=own.capacities(True))
def test_what_can_be_asked_of_a_shared_device_is_there(capacity: Document) -> None:
    for each in capacity.values():
        default = each.get("requestPolicy", {}).get("default", "0")
        assert Quantity.parse(default) <= Quantity.parse(each["value"])


@given(capacity=own.capacities())
def test_nothing_is_said_about_requests_unless_a_device_is_shared(capacity: Document) -> None:
    assert not any("requestPolicy" in each for each in capacity.values())


@settings(max_examples=20)
@given(pool=own.pools(driver="d", node="n", pool="p", max_devices=2, max_slices=2))
def test_a_pool_can_be_named_and_limited(pool: list[Document]) -> None:
    assert 1 <= len(pool) <= 2
    for each in pool:
        assert (each["spec"]["driver"], each["spec"]["nodeName"], each["spec"]["pool"]["name"]) == ("d", "n", "p")
        assert len(each["spec"].get("devices", ())) <= 2


@given(pool=own.pools())
def test_devices_take_from_counters_of_their_own_pool(pool: list[Document]) -> None:
    sets = {each["name"] for document in pool for each in document["spec"].get("sharedCounters", ())}
    devices = [device for document in pool for device in document["spec"].get("devices", ())]
    assert {each["counterSet"] for device in devices for each in device.get("consumesCounters", ())} <= sets


@given(name=own.text(None, st.just("other")))
def test_a_name_that_is_not_given_is_found(name: str) -> None:
    assert name == "other"
