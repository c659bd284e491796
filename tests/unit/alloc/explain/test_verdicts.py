"""Verdicts in words."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain import Verdict, VerdictKind, explain
from devlet.alloc.features import Rules
from devlet.alloc.problems import Problem

Read = Callable[..., Problem]
GPU = 'device.attributes["a.example.com"]'


def verdicts(problem: Problem, request: int = 0) -> dict[str, Verdict]:
    allocator = Allocator(problem.inventory, problem.features)
    report = explain(allocator, problem.nodes, problem.claims).nodes[0].requests[request]
    return {verdict.device.device: verdict for verdict in report.verdicts}


def one(read: Read, devices: list[str], request: str = "r0 2 a", **short: Any) -> dict[str, Verdict]:
    return verdicts(read(slices=[{"pool": "p", "devices": devices}], claims=[[request]], **short))


def test_a_selector_that_does_not_match_is_named_with_the_part_and_the_value(read: Read) -> None:
    memory = 'device.capacity["a.example.com"]["memory"].compareTo(quantity("40Gi")) >= 0'
    found = one(read, ["d1 memory:16Gi", "d2 model=x memory:80Gi"], f"r0 2 a if has({GPU}.model) || {memory}")["d1"]
    assert found.kind is VerdictKind.REQUEST_SELECTOR
    assert found.part == found.expression
    found = one(read, ["d1 memory:16Gi"], "r0 a memory>=40Gi")["d1"]
    assert (found.kind, found.expression, found.part) == (VerdictKind.REQUEST_SELECTOR, memory, memory)
    assert found.detail == "selector #0: memory is 16Gi"


def test_a_device_of_another_class_is_said_to_be_of_another_driver(read: Read) -> None:
    found = one(read, ["d1"], "r0 b")["d1"]
    assert found.kind is VerdictKind.CLASS_SELECTOR
    assert found.detail == 'class b, selector #0: driver is "a.example.com"'


def test_a_selector_that_fails_comes_with_a_hint(read: Read) -> None:
    found = one(read, ["d1 productName=x"], "r0 a productname=x")["d1"]
    assert found.kind is VerdictKind.SELECTOR_ERROR
    assert found.detail == (
        "selector #0: CEL runtime error: no such key: productname; did you mean "
        'device.attributes["a.example.com"].productName?'
    )
    assert found.part == f'{GPU}.productname == "x"'


def test_names_of_another_driver_are_not_reported_as_misspelled(read: Read) -> None:
    slices = [{"pool": "p", "devices": ["d1 x=1"]}, {"pool": "b/q", "devices": ["d2 x=1"]}]
    problem = read(slices=slices, classes=[{"any": {"if": "true"}}], claims=[[f"r0 2 any if has({GPU}.x)"]])
    assert verdicts(problem)["d2"].detail == "selector #0: x is missing"


def test_a_selector_of_a_class_that_does_not_compile_says_so(read: Read) -> None:
    classes = [{"a": {"if": "nonsense("}}]
    problem = read(slices=[{"pool": "p", "devices": ["d1"]}], classes=classes, claims=[["r0 a"]])
    allocator = Allocator(problem.inventory, rules=Rules.reference())
    report = explain(allocator, problem.nodes, problem.claims).nodes[0]
    assert report.outcome == "error"
    assert "CEL compile error" in report.text
    (verdict,) = report.requests[0].verdicts
    assert (verdict.kind, verdict.part) == (VerdictKind.SELECTOR_ERROR, "")
    assert "CEL compile error" in verdict.detail


def test_the_holder_of_a_device_is_named(read: Read) -> None:
    found = one(read, ["d1"], "r0 a", allocated=["p/d1"])["d1"]
    assert (found.kind, found.detail) == (VerdictKind.IN_USE, "by claim default/held-0")
    assert [holder.claim for holder in found.holders] == ["held-0"]


def test_a_taint_comes_with_the_toleration_that_it_needs(read: Read) -> None:
    found = one(read, ["d1 !health=bad:NoSchedule"], "r0 a")["d1"]
    assert found.kind is VerdictKind.TAINT
    assert found.detail == "health=bad:NoSchedule; a toleration of health=bad:NoSchedule would be needed"


def test_capacity_verdicts_name_amounts_and_holders(read: Read) -> None:
    found = one(read, ["d1 shared memory:8Gi"], "r0 a memory:4Gi", allocated=["p/d1 shared memory:5Gi"])["d1"]
    assert found.kind is VerdictKind.CAPACITY
    assert found.detail == "needs 4Gi of memory, 3Gi of 8Gi left, claim default/held-0 holds the rest"


def test_a_violated_policy_is_reported(read: Read) -> None:
    found = one(read, ["d1 shared memory:8(default=2,min=2,max=4)"], "r0 a memory:6")["d1"]
    assert found.detail == "capacity memory: 6 is more than 4, the most that one request may take"


def test_counter_verdicts_name_amounts_and_holders(read: Read) -> None:
    slices = [
        {"pool": "p", "counters": {"set1": {"memory": "8Gi"}}},
        {"pool": "p", "devices": ["d1 set1.memory-=4Gi", "d2 set1.memory-=6Gi"]},
    ]
    found = verdicts(read(slices=slices, claims=[["r0 a"]], allocated=["p/d1"]))["d2"]
    assert found.kind is VerdictKind.COUNTERS
    text = "needs 6Gi of counter memory in set set1, 4Gi left, claim default/held-0 holds the rest"
    assert found.detail == text


def test_a_constraint_says_what_is_wrong_with_the_device(read: Read) -> None:
    slices = [{"pool": "p", "devices": ["d1 a.example.com/x=1", "d2 a.example.com/x=2", "d3"]}]
    claim = {"requests": ["r0 2 a"], "constraints": ["match a.example.com/x"]}
    found = verdicts(read(slices=slices, claims=[claim]))
    assert {verdict.kind for verdict in found.values()} == {VerdictKind.CONSTRAINT}
    assert found["d3"].detail == "constraint #0: has no attribute a.example.com/x"
    assert found["d1"].detail.startswith("constraint #0: a.example.com/x is 1, but request r0 has 1 free device")


def test_unusable_pools_are_reported_with_the_reason(read: Read) -> None:
    slices = [
        {"pool": "old", "devices": ["d1"], "generation": 1},
        {"pool": "old", "devices": ["d2"], "generation": 2, "of": 2},
        {"pool": "twice", "devices": ["d3", "d3"]},
        {"pool": "far", "devices": ["d4"], "at": "node-2"},
    ]
    found = verdicts(read(slices=slices, claims=[["r0 a"]]))
    assert {name: verdict.kind.value for name, verdict in found.items()} == {
        "d1": "pool-obsolete",
        "d2": "pool-incomplete",
        "d3": "pool-invalid",
        "d4": "other-node",
    }
    assert found["d1"].detail == "generation 1, replaced by generation 2"
    assert found["d2"].detail.endswith("is being updated: generation 2 has 1 of 2 slices")
    assert found["d3"].detail.endswith("is invalid: duplicate device name d3")
    assert found["d4"].detail == "is for node node-2"


def test_too_many_devices_elsewhere_are_counted(read: Read) -> None:
    slices = [{"pool": f"p{i}", "devices": 10, "at": f"node-{i}"} for i in range(2, 12)]
    problem = read(slices=slices, claims=[["r0 a"]])
    report = explain(Allocator(problem.inventory), problem.nodes, problem.claims).nodes[0].requests[0]
    assert (report.verdicts, report.elsewhere) == ((), 100)
    assert report.counts == {VerdictKind.OTHER_NODE: 100}


@pytest.mark.spec("DA-11.04")
def test_chosen_and_skipped_devices_are_reported_for_claims_that_fit(read: Read) -> None:
    slices = [{"pool": "p", "devices": ["d1", "d2", "d3 !NoSchedule"]}]
    problem = read(slices=slices, claims=[[{"r0": ["s0 3 a", "s1 a"]}]])
    first, second = verdicts(problem, 0), verdicts(problem, 1)
    assert second["d1"].kind is VerdictKind.CHOSEN
    assert (second["d2"].kind, second["d2"].detail) == (VerdictKind.FREE, "not needed")
    assert second["d3"].kind is VerdictKind.TAINT
    assert first["d2"].detail == "another alternative was chosen"
