from typing import Any

import pytest

from devlet.alloc import Features, Rules
from devlet.alloc.pools import Pool, gather
from devlet.errors import InvalidInput
from tests.support.allocation.desk import Desk

COUNTERS = {"pool": "p1", "counters": {"set1": {"n": 4}}}


def pools(*slices: Any, rules: Rules = Rules(), features: Features = Features(), **more: Any) -> list[Pool]:
    desk = Desk(slices=list(slices), **more)
    return gather(desk.inventory, desk.node, features, rules)


def shown(found: list[Pool]) -> list[str]:
    """`p1: d1 d2`, or `p1 is invalid: …`."""
    return [
        f"{pool.key[1]} {pool.problem}"
        if pool.problem
        else f"{pool.key[1]}: "
        + " ".join(device.device.name for slice_ in pool.slices for device in slice_.entry.chosen(slice_.reachable))
        for pool in found
    ]


@pytest.mark.spec("DA-3.3b")
@pytest.mark.parametrize(
    ("at", "reaches"),
    [
        ("node-1", True),
        ("node-2", False),
        ("all", True),
        ("region=region-1", True),
        ("region=region-2", False),
        ("metadata.name=node-1", True),
        ("metadata.name=node-2", False),
    ],
)
def test_a_slice_is_for_a_node_by_name_selector_or_for_all(at: str, reaches: bool) -> None:
    assert shown(pools({"pool": "p1", "at": at, "devices": 1})) == (["p1: d0"] if reaches else [])


@pytest.mark.spec("DA-3.3b")
def test_a_slice_may_leave_it_to_its_devices() -> None:
    devices = ["d1 @node-1", "d2 @node-2", "d3 @all", "d4 @region=region-1", "d5 @region=region-2"]
    assert shown(pools({"pool": "p1", "at": "devices", "devices": devices})) == ["p1: d1 d3 d4"]
    assert shown(pools({"pool": "p1", "at": "devices", "devices": ["d2 @node-2"]})) == []


@pytest.mark.spec("DA-3.3c")
def test_an_invalid_node_selector_is_an_error_that_names_the_slice() -> None:
    desk = Desk(slices=[{"pool": "p1", "at": "metadata.name=a,b", "devices": 1}], claims=[["r0 a"]])
    with pytest.raises(InvalidInput, match="slice slice-1: node selector cannot be understood: "):
        desk.ask()
    desk = Desk(slices=[{"pool": "p1", "at": "devices", "devices": ["d1 @metadata.name=a,b"]}], claims=[["r0 a"]])
    with pytest.raises(InvalidInput, match="device d1 in slice slice-1: node selector"):
        desk.ask()


@pytest.mark.spec("DA-3.3d")
def test_only_the_highest_generation_counts() -> None:
    old, new = {"pool": "p1", "devices": ["d1"]}, {"pool": "p1", "generation": 2, "devices": ["d2"]}
    assert shown(pools(old, new)) == shown(pools(new, old)) == ["p1: d2"]


@pytest.mark.spec("DA-3.3e")
@pytest.mark.parametrize(("of", "text"), [(3, "has 2 of 3 slices"), (1, "has 2 instead of 1 slices")])
def test_a_pool_without_all_its_slices_is_remembered_without_devices(of: int, text: str) -> None:
    slices = [{"pool": "p1", "of": of, "devices": ["d1"]}, {"pool": "p1", "of": of, "devices": ["d2"]}]
    assert shown(pools(*slices)) == [f"p1 is being updated: generation 1 {text}"]


@pytest.mark.spec("DA-3.3e")
def test_slices_of_other_nodes_complete_a_pool() -> None:
    (pool,) = pools({"pool": "p1", "devices": ["d1"]}, {"pool": "p1", "at": "node-2", "devices": ["d2"]})
    assert shown([pool]) == ["p1: d1"]
    assert [entry.name for entry in pool.others] == ["slice-2"]


@pytest.mark.spec("DA-3.3f")
def test_an_incomplete_pool_with_a_newer_generation_elsewhere_is_no_pool() -> None:
    newer = {"pool": "p1", "generation": 2, "at": "node-2", "devices": ["d2"]}
    assert pools({"pool": "p1", "of": 2, "devices": ["d1"]}, newer, rules=Rules.reference()) == []


@pytest.mark.spec("DA-11.18")
def test_a_newer_generation_on_any_node_replaces_the_pool() -> None:
    slices = [{"pool": "p1", "devices": ["d1"]}, {"pool": "p1", "generation": 2, "at": "node-2", "devices": ["d2"]}]
    assert shown(pools(*slices, rules=Rules.reference())) == ["p1: d1"]
    assert pools(*slices) == []


@pytest.mark.spec("DA-3.3g")
@pytest.mark.parametrize(
    ("devices", "text"),
    [
        (["d1", "d1"], "duplicate device name d1"),
        (["d1 set2.n-=1"], "device d1: counter set set2 not found"),
        (["d1 set1.m-=1"], "device d1: counter m not found in set set1"),
    ],
)
def test_a_pool_that_contradicts_itself_is_invalid(devices: list[str], text: str) -> None:
    assert shown(pools(COUNTERS, {"pool": "p1", "devices": devices})) == [f"p1 is invalid: {text}"]


@pytest.mark.spec("DA-3.3g")
def test_a_counter_set_must_not_come_twice() -> None:
    assert shown(pools(COUNTERS, COUNTERS, {"pool": "p1", "devices": ["d1"]})) == [
        "p1 is invalid: duplicate counter set name set1"
    ]


@pytest.mark.spec("DA-3.3g")
def test_a_device_of_another_node_can_make_a_pool_invalid() -> None:
    slices = [COUNTERS, {"pool": "p1", "devices": ["d1"]}, {"pool": "p1", "at": "node-2", "devices": ["d2 set9.n-=1"]}]
    assert shown(pools(*slices)) == ["p1 is invalid: device d2: counter set set9 not found"]


@pytest.mark.spec("DA-3.3h")
def test_pools_are_sorted_by_driver_and_name_and_those_with_binding_conditions_come_last() -> None:
    slices = [
        {"pool": "b/p1", "devices": ["d1"]},
        {"pool": "p3", "devices": ["d1", "d2 ?Ready"]},
        {"pool": "p2", "devices": ["d1"]},
        {"pool": "p10", "devices": ["d1"]},
    ]
    assert [pool.name.replace(".example.com", "") for pool in pools(*slices)] == ["a/p10", "a/p2", "b/p1", "a/p3"]


@pytest.mark.spec("DA-3.3h")
def test_slices_are_sorted_by_their_names_and_devices_are_not() -> None:
    slices = [
        {"name": "z", "pool": "p1", "devices": ["d1"]},
        {"name": "b", "pool": "p1", "devices": ["d9", "d2"]},
        {"name": "B", "pool": "p1", "devices": ["d5"]},
    ]
    assert shown(pools(*slices)) == ["p1: d5 d9 d2 d1"]


@pytest.mark.spec("DA-3.3i")
def test_without_partitions_their_slices_do_not_exist() -> None:
    features = Features(partitionable_devices=False)
    slices = [COUNTERS, {"pool": "p2", "at": "devices", "devices": ["d1 @all"]}, {"pool": "p3", "devices": ["d1"]}]
    assert shown(pools(*slices, features=features)) == ["p3: d1"]


@pytest.mark.spec("DA-3.7a")
def test_what_is_left_of_counters_is_less_what_devices_of_any_node_have() -> None:
    slices = [
        COUNTERS,
        {"pool": "p1", "devices": ["d1 set1.n-=1", "d2 set1.n-=1"]},
        {"pool": "p1", "at": "node-2", "devices": ["d3 set1.n-=2"]},
    ]
    (pool,) = pools(*slices, allocated=["p1/d1", "p1/d3"])
    assert pool.available() == {("set1", "n"): 10**9}


def test_what_is_left_of_counters_follows_what_claims_have() -> None:
    desk = Desk(slices=[COUNTERS, {"pool": "p1", "devices": ["d1 set1.n-=1"]}], allocated=["p1/d1"])
    (pool,) = gather(desk.inventory, desk.node, Features(), Rules())
    assert pool.available() == {("set1", "n"): 3 * 10**9}
    desk.inventory.release("default", "held-0")
    assert pool.available() == {("set1", "n"): 4 * 10**9}


@pytest.mark.spec("DA-11.18")
def test_slices_that_disagree_about_their_number_make_a_pool_invalid() -> None:
    slices = [{"pool": "p1", "devices": ["d1"], "of": 1}, {"pool": "p1", "devices": ["d2"], "of": 2}]
    for order in (slices, slices[::-1]):
        assert shown(pools(*order)) == ["p1 is invalid: its slices say that there are 1 or 2"]
