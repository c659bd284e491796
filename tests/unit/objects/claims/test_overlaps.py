"""Claims that together hold more of a device than there is."""

from typing import Any

import pytest
from msgspec import convert

from devlet.objects.claims.overlaps import ClaimKey, Ledger
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import DeviceResult
from devlet.objects.types.slice import ResourceSlice
from tests.support.workloads import DRIVER, slice_of

A, B, C = ("default", "a"), ("default", "b"), ("team", "c")
GPU = "device gpu.example.com/n1/gpu-0"


def given(device: str = "gpu-0", share: str = "", **more: Any) -> DeviceResult:
    found = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": device, **more}
    return convert(found | ({"shareID": share} if share else {}), DeviceResult)


def memory(amount: str, share: str) -> DeviceResult:
    return given(share=share, consumedCapacity={"memory": amount})


def ledger(*slices: Document, **claims: DeviceResult) -> Ledger:
    """`claims` are by name, in the namespace default."""
    found = Ledger()
    for each in slices:
        found.put_slice(view(ResourceSlice, each))
    for name, result in claims.items():
        found.hold(("default", name), [result])
    return found


def texts(found: Ledger, claim: ClaimKey | None = None) -> list[str]:
    return [overlap.text for overlap in (found.of(claim) if claim else found.all())]


def test_claims_with_devices_of_their_own_do_not_overlap() -> None:
    found = ledger(slice_of("n1", 2), a=given("gpu-0"), b=given("gpu-1"))
    assert found.all() == found.of(A) == found.of(C) == []


def test_two_claims_with_one_device_overlap_and_each_is_named() -> None:
    found = ledger(slice_of("n1", 1), a=given(), b=given())
    assert texts(found) == texts(found, A) == texts(found, B)
    assert texts(found) == [f"{GPU} is allocated to two claims: default/a and default/b"]
    assert found.all()[0].others(A) == "claim default/b"
    found.hold(C, [given()])
    assert texts(found) == [f"{GPU} is allocated to three claims: default/a, default/b and team/c"]
    assert found.all()[0].others(B) == "claims default/a and team/c"


def test_a_device_that_no_slice_publishes_can_be_held_twice() -> None:
    assert len(ledger(a=given(), b=given()).all()) == 1


def test_an_overlap_ends_when_one_of_two_claims_loses_the_device_or_gets_another() -> None:
    found = ledger(a=given(), b=given())
    found.release(B)
    found.release(B)
    assert not found.all()
    found.hold(B, [given()])
    assert found.all()
    found.hold(B, [given("gpu-1")])
    assert not found.all() and not found.of(A)


def test_admin_access_is_not_an_overlap() -> None:
    assert not ledger(a=given(), b=given(adminAccess=True)).all()


def test_one_claim_may_have_a_device_for_several_requests() -> None:
    found = Ledger()
    found.hold(A, [given(), given(request="other")])
    assert not found.all()


def test_a_share_and_a_whole_device_overlap() -> None:
    found = ledger(a=given(), b=given(share="s"), c=given(share="t"))
    assert texts(found) == [f"{GPU} is allocated to three claims: default/a, default/b and default/c"]


def test_shares_overlap_only_if_they_are_one_share() -> None:
    found = ledger(a=given(share="s"), b=given(share="t"), c=given(share="t"))
    assert texts(found) == [f"{GPU} is allocated to two claims: default/b and default/c"]
    assert not found.of(A)


SHARED = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "16Gi"}}}


def test_shares_overlap_if_they_exceed_the_capacity_of_the_device() -> None:
    found = ledger(slice_of("n1", [SHARED]), a=memory("8Gi", "s"), b=memory("8Gi", "t"))
    assert not found.all()
    found.hold(C, [memory("1", "u")])
    assert texts(found, A) == [f"claims default/a, default/b and team/c together hold more memory of {GPU} than it has"]
    found.release(A)
    assert not found.all()


def test_one_claim_alone_does_not_overlap_even_if_the_capacity_has_shrunk() -> None:
    assert not ledger(slice_of("n1", [SHARED]), a=memory("32Gi", "s")).all()


def test_a_share_with_an_invalid_amount_takes_the_whole_device() -> None:
    found = ledger(slice_of("n1", [SHARED]), a=memory("much", "s"), b=memory("1Gi", "t"))
    assert texts(found) == [f"{GPU} is allocated to two claims: default/a and default/b"]


def part(name: str, amount: str) -> Document:
    counters = {"memory": {"value": amount}}
    return {"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": counters}]}


def partitions(generation: int = 1, total: str = "40Gi") -> list[Document]:
    devices = slice_of("n1", [part("half-0", "20Gi"), part("half-1", "20Gi"), part("whole", "40Gi")])
    counters = slice_of("n1", [])
    counters["metadata"]["name"] = "counters"
    counters["spec"]["sharedCounters"] = [{"name": "gpu-0", "counters": {"memory": {"value": total}}}]
    for each in (devices, counters):
        each["spec"]["pool"] |= {"generation": generation, "resourceSliceCount": 2}
    return [devices, counters]


def test_partitions_overlap_if_they_take_more_from_a_counter_than_it_has() -> None:
    found = ledger(*partitions(), a=given("half-0"), b=given("half-1"))
    assert not found.all()
    found.hold(C, [given("whole")])
    expected = (
        "claims default/a, default/b and team/c together hold more memory"
        " of counter set gpu-0 of pool gpu.example.com/n1 than it has"
    )
    assert texts(found) == texts(found, B) == [expected]
    found.release(C)
    assert not found.all()


def test_claims_with_other_devices_of_the_pool_are_not_part_of_an_overlap_of_partitions() -> None:
    devices, counters = partitions()
    devices["spec"]["devices"].append({"name": "plain"})
    found = ledger(devices, counters, a=given("plain"), b=given("half-1"), c=given("whole"))
    assert not found.of(A) and len(found.of(B)) == 1


def test_the_newest_generation_of_a_pool_counts() -> None:
    old = slice_of("n1", [SHARED])
    new = slice_of("n1", [SHARED | {"capacity": {"memory": {"value": "32Gi"}}}], generation=2)
    new["metadata"]["name"] = "new"
    found = ledger(old, new, a=memory("16Gi", "s"), b=memory("16Gi", "t"))
    assert not found.all()
    found.remove_slice("new")
    assert found.all()
    found.remove_slice("n1-gpu.example.com")
    assert not found.all()


@pytest.mark.parametrize("value", ["much", ""])
def test_a_slice_with_invalid_amounts_limits_nothing(value: str) -> None:
    device = SHARED | {"capacity": {"memory": {"value": value}}}
    assert not ledger(slice_of("n1", [device]), a=memory("8Gi", "s"), b=memory("8Gi", "t")).all()
