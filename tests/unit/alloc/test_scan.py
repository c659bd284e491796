"""Which nodes can have claims: the same answer as asking each of them, with less work."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.alloc import Allocator, Features, Fit, Rules, Scan
from devlet.alloc import scan as scan_module
from devlet.alloc.problems import Problem, read_problem
from devlet.errors import InvalidInput
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.slice import ResourceSlice
from tests.support.allocation.shorthand import problem
from tests.support.problems.generator import mixed_problem

BOTH_RULES = pytest.mark.parametrize("rules", [Rules(), Rules.reference()], ids=["improved", "reference"])
NODES = [{"metadata": {"name": f"node-{i}", "labels": {"region": f"region-{i}"}}} for i in range(1, 5)]


def cluster(*slices: Document, claims: Any = (("r0 a",),), allocated: Any = ()) -> Problem:
    """Four nodes; slices are for node-1 unless told otherwise."""
    short = {"case": "c", "slices": list(slices), "claims": [list(c) for c in claims], "allocated": list(allocated)}
    return read_problem(problem(short) | {"nodes": NODES})


def one_by_one(allocator: Allocator, problem: Problem) -> list[int] | str:
    try:
        outcomes = [allocator.allocate(node, problem.claims) for node in problem.nodes]
    except InvalidInput as e:
        return str(e)
    return [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Fit)]


def scanned(scan: Scan, problem: Problem, start: int = 0, enough: int = 99) -> list[int] | str:
    try:
        return scan.feasible(scan.allocator.read(problem.claims), start, enough)
    except InvalidInput as e:
        return str(e)


@BOTH_RULES
@settings(max_examples=settings().max_examples // 4)
@given(seed=st.integers(0, 1 << 20))
def test_the_scan_agrees_with_asking_each_node(rules: Rules, seed: int) -> None:
    for many in (mixed_problem(seed), mixed_problem(seed, most=2)):
        for document in (many, many | {"claims": many["claims"][:1]}):
            read = read_problem(document)
            allocator = Allocator(read.inventory, read.features, rules)
            scan = Scan(allocator, read.nodes)
            assert scanned(scan, read) == one_by_one(allocator, read)


PLAIN = [{"pool": f"p{i}", "at": f"node-{i}", "devices": ["d1", "d2"]} for i in range(1, 5)]


def test_the_scan_goes_around_from_where_it_starts_until_it_has_enough() -> None:
    read = cluster(*PLAIN)
    scan = Scan(Allocator(read.inventory), read.nodes)
    assert scanned(scan, read, start=2, enough=3) == [2, 3, 0]
    assert scanned(scan, read, start=2) == [2, 3, 0, 1]
    assert scanned(scan, read, start=6, enough=1) == [2]
    assert Scan(scan.allocator, []).feasible(scan.allocator.read(read.claims), 3, 1) == []


def holder(device: str) -> ResourceClaim:
    return view(ResourceClaim, problem({"case": "c", "allocated": [device]})["allocated"][0])


def test_what_is_held_and_released_counts_at_once() -> None:
    read = cluster(*PLAIN, claims=[["r0 2 a"]])
    scan = Scan(Allocator(read.inventory), read.nodes)
    assert scanned(scan, read) == [0, 1, 2, 3]
    read.inventory.hold(holder("p2/d1"))
    assert scanned(scan, read) == [0, 2, 3]
    read.inventory.release("default", "held-0")
    assert scanned(scan, read) == [0, 1, 2, 3]


def test_slices_that_come_and_go_count_at_once() -> None:
    read = cluster(*PLAIN[:2])
    scan = Scan(Allocator(read.inventory), read.nodes)
    assert scanned(scan, read) == [0, 1]
    read.inventory.put_slice(
        view(ResourceSlice, problem({"case": "c", "slices": [PLAIN[2] | {"name": "new"}]})["slices"][0])
    )
    read.inventory.remove_slice("slice-1")
    assert scanned(scan, read) == [1, 2]


def test_a_class_that_changes_counts_at_once() -> None:
    read = cluster(*PLAIN)
    scan = Scan(Allocator(read.inventory), read.nodes)
    assert scanned(scan, read) == [0, 1, 2, 3]
    changed = {"metadata": {"name": "a"}, "spec": {"selectors": [{"cel": {"expression": "false"}}]}}
    read.inventory.put_class(view(DeviceClass, changed))
    assert scanned(scan, read) == []


@pytest.mark.parametrize("odd", ["!NoSchedule", "s.n-=9", "lanes:4(default=9)", "lanes:-1"])
def test_devices_that_cannot_be_counted_are_searched(odd: str) -> None:
    counters = {"pool": "p1", "at": "all", "counters": {"s": {"n": 4}}}
    read = cluster({"pool": "p1", "devices": [f"d1 {odd}"]}, counters, *PLAIN[1:])
    scan = Scan(Allocator(read.inventory), read.nodes)
    assert scanned(scan, read) == [1, 2, 3]


def test_conditions_are_hidden_while_their_feature_is_off() -> None:
    read = cluster({"pool": "p1", "devices": ["d1 ?Ready"]}, *PLAIN[1:])
    features = Features(device_binding_and_status=False)
    allocator = Allocator(read.inventory, features)
    assert scanned(Scan(allocator, read.nodes), read) == one_by_one(allocator, read) == [1, 2, 3]


@pytest.mark.parametrize("features", [Features(), Features(consumable_capacity=False)])
def test_shares_that_are_left_of_a_device_that_is_no_longer_shared_are_noticed(features: Features) -> None:
    read = cluster({"pool": "p1", "devices": ["d1 lanes:4"]}, *PLAIN[1:])
    scan = Scan(Allocator(read.inventory, features), read.nodes)
    assert scanned(scan, read) == [0, 1, 2, 3]
    read.inventory.hold(holder("p1/d1 shared lanes:1"))
    assert scanned(scan, read) == one_by_one(scan.allocator, read) == [1, 2, 3]
    read.inventory.release("default", "held-0")
    assert scanned(scan, read) == [0, 1, 2, 3]


def test_a_selector_that_fails_on_one_node_does_not_match_there() -> None:
    read = cluster(
        {"pool": "p1", "devices": ["d1"]}, {"pool": "p2", "at": "node-2", "devices": ["d1 x=1"]}, claims=[["r0 a x=1"]]
    )
    assert scanned(Scan(Allocator(read.inventory), read.nodes), read) == [1]
    reference = Scan(Allocator(read.inventory, rules=Rules.reference()), read.nodes)
    assert scanned(reference, read) == "claim default/claim-0: selector #0: CEL runtime error: no such key: x"


def test_the_number_of_cached_selectors_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "ROWS_MAX", 16)
    read = cluster(*PLAIN)
    scan = Scan(Allocator(read.inventory), read.nodes)
    for i in range(scan_module.ROWS_MAX + 5):
        other = cluster(claims=[[f"r0 a if {i} > 3"]])
        assert scanned(scan, other) == ([0, 1, 2, 3] if i > 3 else [])
    assert len(scan._rows) == scan_module.ROWS_MAX


def test_a_scan_can_be_warmed() -> None:
    read = cluster(*PLAIN)
    scan = Scan(Allocator(read.inventory), read.nodes)
    scan.warm()
    assert scanned(scan, read) == [0, 1, 2, 3]
