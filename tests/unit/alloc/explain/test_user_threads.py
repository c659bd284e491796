"""What users asked about, rebuilt: explain names the cause that blocked them. The name of a test's thread is its id."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain import Explanation, VerdictKind, explain
from devlet.alloc.features import Features, Rules
from devlet.alloc.problems import Problem, read_problem
from devlet.alloc.search import Limits
from tests.support.problems.generator import symmetric_problem

Read = Callable[..., Problem]
GPU = 'device.attributes["a.example.com"]'


def explained(problem: Problem, rules: Rules = Rules(), features: Features | None = None) -> Explanation:
    return explain(Allocator(problem.inventory, features or problem.features, rules), problem.nodes, problem.claims)


def thread(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("_thread", [name], ids=[name])


# Row 9: why is it pending, what is free, who has which device


@thread("Project-HAMi/HAMi#2286")
def test_a_share_that_does_not_fit_says_what_is_needed_and_left_on_each_device(read: Read, _thread: str) -> None:
    slices = [{"pool": "p", "devices": ["gpu-0 shared memory:16Gi cores:100", "gpu-1 shared memory:16Gi cores:100"]}]
    held = ["p/gpu-0 shared memory:12Gi cores:10", "p/gpu-1 shared memory:4Gi cores:90"]
    found = explained(read(slices=slices, claims=[["r0 a memory:8Gi cores:30"]], allocated=held))
    text = "request r0 needs 1 device, 0 are free of 2 that match (2 without enough capacity)"
    assert found.nodes[0].text == text
    details = [verdict.detail for verdict in found.nodes[0].requests[0].verdicts]
    assert details == [
        "needs 8Gi of memory, 4Gi of 16Gi left, claim default/held-0 holds the rest",
        "needs 30 of cores, 10 of 100 left, claim default/held-1 holds the rest",
    ]
    assert "release claim default/held-0, which holds gpu-0" in [change.text for change in found.changes]


@thread("kai-scheduler/KAI-Scheduler#1217")
def test_nodes_that_fail_for_different_reasons_are_counted_apart(read: Read, _thread: str) -> None:
    """There it was 12 nodes without GPUs and 6 that "cannot allocate all claims", with no word on what they lack."""
    nodes = tuple(f"node-{i}" for i in range(2, 19))
    slices = [{"pool": f"p{i}", "devices": ["channel-0"], "at": f"node-{i}"} for i in range(1, 19)]
    held = [f"p{i}/channel-0" for i in range(1, 7)]
    for i in range(7, 19):
        slices[i - 1]["devices"] = ["channel-0 !health=unknown:NoSchedule"]
    found = explained(read(nodes=nodes, slices=slices, claims=[["channel a"]], allocated=held))
    assert dict(found.causes) == {
        "request channel finds no free devices (in use)": 6,
        "request channel finds no free devices (tainted)": 12,
    }
    assert found.summary.startswith("0/18 nodes are available: 12 ")


@thread("kubernetes/enhancements#5677")
def test_the_number_of_free_devices_is_reported_for_each_request(read: Read, _thread: str) -> None:
    slices = [{"pool": "p", "devices": ["d0", "d1", "d2", "d3 !NoSchedule"]}]
    found = explained(read(slices=slices, claims=[["r0 2 a"]], allocated=["p/d0", "p/d1"]))
    counts = found.nodes[0].requests[0].counts
    assert counts == {VerdictKind.IN_USE: 2, VerdictKind.FREE: 1, VerdictKind.TAINT: 1}
    assert found.nodes[0].text == "request r0 needs 2 devices, 1 is free of 4 that match (2 in use, 1 tainted)"


@thread("NVIDIA/gpu-operator#183")
def test_the_holder_of_a_device_is_named(read: Read, _thread: str) -> None:
    found = explained(read(slices=[{"pool": "p", "devices": 2}], claims=[["r0 a"]], allocated=["p/d1", "p/d0"]))
    holders = {v.device.device: [h.claim for h in v.holders] for v in found.nodes[0].requests[0].verdicts}
    assert holders == {"d0": ["held-1"], "d1": ["held-0"]}


# Row 10: selectors


@thread("kubernetes/kubernetes#125826")
@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        (f'{GPU}.productname == "x"', f"did you mean {GPU}.productName?"),
        ('device.attributes["example.com"].productName == "x"', f"did you mean {GPU}.productName?"),
        (f"{GPU}.memory == 1", 'did you mean device.capacity["a.example.com"].memory?'),
    ],
)
def test_a_missing_key_is_named_with_a_suggestion(read: Read, _thread: str, expression: str, hint: str) -> None:
    slices = [{"pool": "p", "devices": ["d0 productName=x memory:8Gi"]}]
    (verdict,) = explained(read(slices=slices, claims=[[f"r0 a if {expression}"]])).nodes[0].requests[0].verdicts
    assert verdict.kind is VerdictKind.SELECTOR_ERROR
    assert "CEL runtime error: no such key: " in verdict.detail
    assert verdict.detail.endswith(hint)
    assert verdict.part == expression


@thread("kubernetes/kubernetes#125826")
def test_the_corrected_name_is_proposed_if_it_makes_it_fit(read: Read, _thread: str) -> None:
    slices = [{"pool": "p", "devices": ["d0 productName=x"]}]
    found = explained(read(slices=slices, claims=[[f'r0 a if {GPU}.productname == "x"']]))
    assert found.changes[0].text == (
        f"write {GPU}.productName instead of {GPU}.productname in selector #0 of request r0"
    )


@thread("kubernetes-sigs/kueue#14372")
def test_a_selector_that_another_environment_refuses_says_what_it_does_not_know(read: Read, _thread: str) -> None:
    """Accepted with list attributes on, read where they are off."""
    expression = f'{GPU}.roots.includes("r1")'
    problem = read(slices=[{"pool": "p", "devices": ["d0 roots=[r1,r2]"]}], claims=[[f"r0 a if {expression}"]])
    assert explained(problem).fits
    found = explained(problem, features=Features(list_type_attributes=False))
    assert not found.fits
    (verdict,) = found.nodes[0].requests[0].verdicts
    assert verdict.kind is VerdictKind.SELECTOR_ERROR
    assert "attribute roots: unsupported attribute value" in verdict.detail


@thread("run-ai/fake-gpu-operator#189")
def test_a_class_that_asks_for_an_attribute_that_only_some_devices_have(read: Read, _thread: str) -> None:
    classes = [{"a": {"if": f"device.driver == 'a.example.com' && {GPU}.type == 'gpu'"}}]
    slices = [
        {"pool": "fake", "devices": ["d0 model=x uuid=1"], "at": "node-1"},
        {"pool": "real", "devices": ["d1 model=x uuid=2 type=gpu"], "at": "node-2"},
    ]
    found = explained(read(classes=classes, slices=slices, claims=[["r0 a"]]))
    verdict = found.nodes[0].requests[0].verdicts[0]
    assert verdict.kind is VerdictKind.SELECTOR_ERROR
    assert verdict.detail == (
        "class a, selector #0: CEL runtime error: no such key: type; "
        f"type exists in 1 of 2 devices: test has({GPU}.type) first"
    )
    assert verdict.part == f"{GPU}.type == 'gpu'"


# Row 15: what left pods pending though it could have fit, or searched for ever


def counters_and_taint() -> list[dict[str, Any]]:
    return [
        {"pool": "p", "counters": {"set1": {"memory": "8Gi"}}},
        {"pool": "p", "devices": ["d0 set1.memory-=8Gi !NoSchedule", "d1 set1.memory-=8Gi"]},
    ]


@thread("kubernetes/kubernetes#140436")
def test_a_device_that_is_refused_keeps_no_counters(read: Read, _thread: str) -> None:
    problem = read(slices=counters_and_taint(), claims=[["r0 a"]])
    assert explained(problem).nodes[0].text == "default/claim-0 gets a.example.com/p/d1 for r0"
    blocked = explained(read(slices=counters_and_taint(), claims=[["r0 2 a ~NoSchedule"]]))
    assert not blocked.fits
    assert blocked.changes[0].text == "ask for 1 instead of 2 in request r0"


@thread("kubernetes/kubernetes#139040")
def test_counters_that_a_shared_device_takes_are_missing(read: Read, _thread: str) -> None:
    slices = [
        {"pool": "p", "counters": {"set1": {"memory": "8Gi"}}},
        {"pool": "p", "devices": ["d0 shared set1.memory-=6Gi bandwidth:10", "d1 set1.memory-=4Gi"]},
    ]
    problem = read(slices=slices, claims=[["r0 a bandwidth:20"], ["r0 a"]], allocated=["p/d0 shared bandwidth:10"])
    found = explained(problem)
    verdicts = found.nodes[0].requests[1].verdicts
    assert verdicts[1].kind is VerdictKind.COUNTERS
    assert verdicts[1].detail == (
        "needs 4Gi of counter memory in set set1, 2Gi left, claim default/held-0 holds the rest"
    )


NUMA = ["d1 numa=[1,2]", "d2 numa=[1]", "d3 numa=[2]", "d4 numa=[2]"]


@thread("kubernetes/kubernetes#140326")
def test_values_in_common_survive_backtracking(read: Read, _thread: str) -> None:
    slices = [{"pool": "p", "devices": NUMA}]
    claim = {"requests": ["r0 3 a"], "constraints": ["match a.example.com/numa"]}
    problem = read(slices=slices, claims=[claim])
    found = explained(problem)
    assert [v.device.device for v in found.nodes[0].requests[0].verdicts if v.kind == "chosen"] == ["d1", "d3", "d4"]
    passed = next(v for v in found.nodes[0].requests[0].verdicts if v.device.device == "d2")
    assert passed.detail == "constraint #0: a.example.com/numa is 1, the chosen have 2"
    as_there = explained(problem, Rules.reference())
    assert not as_there.fits
    assert "a.example.com/numa" in as_there.summary


@thread("kubernetes/kubernetes#140769")
def test_distinct_values_must_differ_in_every_pair(read: Read, _thread: str) -> None:
    slices = [{"pool": "p", "devices": ["d0 numa=1", "d1 numa=2", "d2 numa=1", "d3 numa=2"]}]
    claim = {"requests": ["r0 3 a"], "constraints": ["distinct a.example.com/numa"]}
    found = explained(read(slices=slices, claims=[claim]))
    assert found.nodes[0].text == (
        "request r0 (3 devices) must differ in attribute a.example.com/numa, of which free devices have 1, 2"
    )
    assert [change.text for change in found.changes] == [
        "ask for 2 instead of 3 in request r0",
        "remove constraint #0 (distinctAttribute a.example.com/numa)",
    ]


@thread("kubernetes/kubernetes#130593")
def test_a_symmetric_problem_is_explained_without_trying_all_combinations(_thread: str) -> None:
    problem = read_problem(symmetric_problem(20, 4))
    found = explain(Allocator(problem.inventory), problem.nodes, problem.claims, limits=lambda: Limits(steps=20_000))
    assert found.nodes[0].text == (
        "request r (4 devices) and request q (20 devices) need 24 devices together, "
        "but only 20 are free and match any of them"
    )


@thread("kubernetes/kubernetes#130593")
def test_too_many_devices_in_every_alternative_are_reported(read: Read, _thread: str) -> None:
    claim = ["r0 20 a", {"r1": ["s0 13 a", "s1 14 a"]}]
    found = explained(read(slices=[{"pool": "p", "devices": 60}], claims=[claim]))
    assert not found.fits
    assert "more than 32 devices, the limit of a claim" in found.summary
