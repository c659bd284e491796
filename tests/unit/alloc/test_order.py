import pytest

from devlet.alloc import Rules
from devlet.alloc.order import best_fit
from tests.support.allocation.desk import Desk

PARTITIONS = [
    {"pool": "p1", "devices": ["whole s.n-=4", "half s.n-=2", "other-half s.n-=2", "quarter s.n-=1"]},
    {"pool": "p1", "counters": {"s": {"n": "4"}}},
]
SHARED = [{"pool": "p1", "devices": ["d1 lanes:8 shared", "d2 lanes:8 shared", "d3 lanes:8 shared"]}]


@pytest.mark.spec("DA-11.05")
def test_the_smallest_partition_that_matches_is_given() -> None:
    assert Desk(slices=PARTITIONS, claims=[["r0 a"]]).ask() == [["r0 p1/quarter"]]
    assert Desk(slices=PARTITIONS, claims=[["r0 a"]], rules=Rules(best_fit=False)).ask() == [["r0 p1/whole"]]


@pytest.mark.spec("DA-11.05")
def test_a_share_goes_where_the_least_is_left() -> None:
    held = ["p1/d2 shared lanes:2", "p1/d3 shared lanes:4"]
    desk = Desk(slices=SHARED, allocated=held, claims=[["r0 a lanes:4"]])
    assert desk.ask() == [["r0 p1/d3"]]
    assert Desk(slices=SHARED, allocated=held, claims=[["r0 a lanes:5"]]).ask() == [["r0 p1/d2"]]


def test_devices_that_are_neither_keep_their_order() -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": ["d3", "d1", "d2"]}])
    devices = [desk.entry(f"p1/{name}") for name in ("d3", "d1", "d2")]
    assert best_fit(devices) is devices


def test_alike_devices_keep_their_order() -> None:
    desk = Desk(slices=SHARED)
    devices = [desk.entry(f"p1/{name}") for name in ("d2", "d3", "d1")]
    assert best_fit(devices) == devices


def test_a_device_without_capacity_goes_first() -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": ["d1 lanes:8 shared", "d2 shared", "d3 lanes:0 shared"]}])
    devices = [desk.entry(f"p1/{name}") for name in ("d1", "d2", "d3")]
    assert [each.device.name for each in best_fit(devices)] == ["d2", "d3", "d1"]


def test_shares_and_partitions_change_places_among_themselves_only() -> None:
    devices = ["plain1", "part2 s.n-=2", "share1 shared lanes:4", "plain2", "part1 s.n-=1", "share2 shared lanes:4"]
    slices = [{"pool": "p1", "devices": devices}, {"pool": "p1", "counters": {"s": {"n": 9}}}]
    desk = Desk(slices=slices, claims=[["r0 a"]])
    names = [device.split()[0] for device in devices]
    found = [each.identity.device for each in best_fit([desk.entry(f"p1/{name}") for name in names])]
    assert found == ["plain1", "part1", "share1", "plain2", "part2", "share2"]
