from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.objects.values.quantity import Quantity
from tests.support.allocation.shorthand import problem
from tests.support.allocation.supply import DeviceKey, Pool, counters_of, holdings, pools

D1 = DeviceKey("a.example.com", "p1", "d1")


def found(*slices: Document, whole: bool = True, partitions: bool = True) -> list[Pool]:
    document = problem({"case": "test", "slices": list(slices)})
    return pools(document["slices"], document["nodes"][0], partitions=partitions, whole_generation=whole)


def names(pool: Pool) -> list[str]:
    return [offer.device["name"] for offer in pool.offers]


def part(pool: str, *devices: str, **more: Any) -> Document:
    return {"pool": pool, "devices": list(devices), **more}


def test_devices_come_in_the_order_of_their_slices_names() -> None:
    (pool,) = found(part("p1", "z", "a", name="s2"), part("p1", "m", name="s1"))
    assert names(pool) == ["m", "z", "a"]
    assert not pool.broken


def test_slices_of_other_nodes_complete_a_pool_but_offer_nothing() -> None:
    (pool,) = found(part("p1", "d1"), part("p1", "d2", at="node-2"))
    assert names(pool) == ["d1"]
    assert [device["name"] for device in pool.devices] == ["d1", "d2"]


@pytest.mark.parametrize("slices", [[part("p1", "d1", of=2)], [part("p1", "d1", of=1), part("p1", "d2", of=1)]])
def test_too_few_or_too_many_slices_break_a_pool(slices: list[Document]) -> None:
    (pool,) = found(*slices)
    assert pool.broken == "not all its slices are there"


@pytest.mark.parametrize(
    ("slices", "why"),
    [
        ([part("p1", "d1"), part("p1", "d1")], "two devices have the same name"),
        ([part("p1", counters={"s": {}}), part("p1", counters={"s": {}})], "two counter sets have the same name"),
        ([part("p1", "d1 s.n-=1")], "a device uses counters that do not exist"),
        ([part("p1", "d1 s.n-=1"), part("p1", counters={"s": {"m": 1}})], "a device uses counters that do not exist"),
    ],
)
def test_a_pool_that_contradicts_itself_is_broken(slices: list[Document], why: str) -> None:
    (pool,) = found(*slices)
    assert pool.broken == why


def test_an_old_generation_is_gone() -> None:
    (pool,) = found(part("p1", "old"), part("p1", "new", generation=2))
    assert names(pool) == ["new"]


def test_a_newer_generation_on_another_node_is_noticed_by_the_whole_pool_only() -> None:
    slices = part("p1", "old"), part("p1", "new", generation=2, at="node-2")
    assert found(*slices) == []
    (pool,) = found(*slices, whole=False)
    assert names(pool) == ["old"]


def test_without_partitions_their_slices_do_not_exist() -> None:
    slices = part("p1", "d1 @node-1", at="devices"), part("p2", "d2"), part("p2", counters={"s": {"n": 1}})
    (pool,) = found(*slices, partitions=False)
    assert names(pool) == ["d2"]


def test_devices_say_themselves_whether_they_reach_the_node() -> None:
    (pool,) = found(part("p1", "d1 @node-1", "d2 @node-2", "d3 @all", "d4 @region=region-1", at="devices"))
    assert [offer.reaches_node for offer in pool.offers] == [True, False, True, True]


def test_a_slice_for_nobody_is_no_pool() -> None:
    assert found(part("p1", "d1", at="region=elsewhere")) == []


def held(*texts: str, sharing: bool = True) -> Any:
    return holdings(problem({"case": "test", "allocated": list(texts)})["allocated"], sharing=sharing)


def test_shares_add_up_and_admin_access_takes_nothing() -> None:
    state = held("p1/d1 shared lanes:1", "p1/d1 shared lanes:2", "p1/d2 admin", "p1/d3")
    assert state.consumed == {D1: {"lanes": Quantity.of(3)}}
    assert state.shares == {D1}
    assert {key.device for key in state.exclusive} == {"d3"}


def test_without_sharing_a_share_is_the_device() -> None:
    assert held("p1/d1 shared lanes:1", sharing=False).exclusive == {D1}


def test_counters_of_a_device_are_by_set() -> None:
    device = problem({"case": "test", "slices": [part("p1", "d1 s.n-=1 s.m-=2 t.n-=3")]})["slices"][0]["spec"][
        "devices"
    ][0]
    assert counters_of(device) == {"s": {"n": Quantity.of(1), "m": Quantity.of(2)}, "t": {"n": Quantity.of(3)}}
