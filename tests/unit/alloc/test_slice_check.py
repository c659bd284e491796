import pytest

from devlet.alloc.slice_check import check_amounts
from devlet.errors import InvalidInput
from devlet.objects.documents import Document, view
from devlet.objects.types.slice import ResourceSlice


def slice_of(device: Document | None = None, counters: Document | None = None) -> ResourceSlice:
    sets = [{"name": "set1", "counters": counters}] if counters else []
    spec = {"devices": [{"name": "d1"}, {"name": "d2", **(device or {})}], "sharedCounters": sets}
    return view(ResourceSlice, {"metadata": {"name": "slice-1"}, "spec": spec})


def capacity(value: object, **policy: object) -> Document:
    return {"capacity": {"lanes": {"value": value} | ({"requestPolicy": policy} if policy else {})}}


@pytest.mark.parametrize(
    ("device", "where"),
    [
        (capacity("much"), "capacity lanes"),
        (capacity("1", default="much"), "capacity lanes, default"),
        (capacity("1", validValues=["1", "much"]), "capacity lanes, validValues"),
        (capacity("1", validRange={"min": "much"}), "capacity lanes, validRange.min"),
        (capacity("1", validRange={"max": "much"}), "capacity lanes, validRange.max"),
        (capacity("1", validRange={"step": "much"}), "capacity lanes, validRange.step"),
        ({"consumesCounters": [{"counterSet": "s", "counters": {"n": {"value": "much"}}}]}, "counter s/n"),
    ],
)
def test_an_invalid_amount_is_named_with_its_place(device: Document, where: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^slice slice-1, device d2, {where}: 'much' is not a quantity: "):
        check_amounts(slice_of(device))


def test_a_counter_set_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"^slice slice-1, counter set set1, counter n: 'much' is not a quantity"):
        check_amounts(slice_of(counters={"n": {"value": "much"}}))


@pytest.mark.parametrize("value", ["", "1e99999", "9" * 2000, "0x10", "1 Gi"])
def test_an_invalid_quantity_is_rejected(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"slice slice-1, device d2, capacity lanes"):
        check_amounts(slice_of(capacity(value)))


@pytest.mark.parametrize("value", ["1", "-1", "1Gi", 3, 0.5, "1e3"])
def test_quantities_pass(value: object) -> None:
    check_amounts(slice_of(capacity(value, default=value, validRange={"min": value}), {"n": {"value": value}}))
