"""Conflicts in one sentence."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain import Conflict, explain
from devlet.alloc.explain.sentences import blocked, distance
from devlet.alloc.explain.standing import Scene
from devlet.alloc.problems import Problem

Read = Callable[..., Problem]


def conflict(problem: Problem) -> Conflict:
    found = explain(Allocator(problem.inventory, problem.features), problem.nodes, problem.claims).nodes[0].conflict
    assert found is not None
    return found


def one(devices: list[str] | int, *requests: Any, **short: Any) -> dict[str, Any]:
    return {"slices": [{"pool": "p", "devices": devices}], "claims": [list(requests)], **short}


def constrained(devices: list[str], constraint: str, *requests: str) -> dict[str, Any]:
    return one(devices, claims=[{"requests": list(requests), "constraints": [constraint]}])


WIDE_AND_DEEP = (("d1", 39, 1), ("d2", 1, 4), ("d3", 39, 1))
PARTS = [
    {"pool": "p", "counters": {"set1": {"memory": "8Gi"}}},
    {"pool": "p", "devices": ["d1 set1.memory-=6Gi", "d2 set1.memory-=6Gi"]},
]

TWO_COUNTERS = [
    {"pool": "p", "counters": {"set1": {"memory": 40, "cores": 4}}},
    {"pool": "p", "devices": [f"{d} set1.memory-={m} set1.cores-={c}" for d, m, c in WIDE_AND_DEEP]},
]


@pytest.mark.spec("DA-11.04")
@pytest.mark.parametrize(
    ("short", "text", "cause"),
    [
        (
            one(8, "gpu 3 a", allocated=[f"p/d{i}" for i in range(6)]),
            "request gpu needs 3 devices, 2 are free of 8 that match (6 in use)",
            "request gpu finds too few free devices (in use)",
        ),
        (
            one(["d1 !NoSchedule", "d2"], "gpu a", allocated=["p/d2"]),
            "request gpu needs 1 device, 0 are free of 2 that match (1 in use, 1 tainted)",
            "request gpu finds no free devices (in use or tainted)",
        ),
        (one([], "gpu a"), "request gpu needs 1 device, the node has none", "request gpu finds no devices on the node"),
        (
            one(2, "gpu 3 a"),
            "request gpu needs 3 devices, the node has 2",
            "request gpu needs more devices than the node has",
        ),
        (
            one(2, "nic b"),
            'request nic needs 1 device, 0 of 2 devices are of class b: device.driver == "b.example.com" is false '
            '(class b, selector #0: driver is "a.example.com")',
            "request nic finds no device of class b",
        ),
        (
            one(["d1 x=1", "d2 x=2"], "gpu 2 a x=1"),
            "request gpu needs 2 devices, 1 of 2 of class a matches its selectors: "
            'device.attributes["a.example.com"].x == 1 is false (selector #0: x is 2)',
            'request gpu finds too few devices that match device.attributes["a.example.com"].x == 1',
        ),
        (
            one(["d1 x=1"], "gpu a y=1"),
            "request gpu needs 1 device, a selector fails on 1 of 1 device: selector #0: CEL runtime error: "
            "no such key: y; no device has a.example.com/y",
            "request gpu has a selector that fails: selector #0: CEL runtime error: no such key: y; "
            "no device has a.example.com/y",
        ),
        (
            one(3, "gpu 2 a", "nic 2 a"),
            "request gpu (2 devices) and request nic (2 devices) need 4 devices together, "
            "but only 3 are free and match any of them",
            "request gpu and request nic together need more devices than are free",
        ),
        (
            {"slices": PARTS, "claims": [["r0 a", "r1 a"]]},
            "request r0 (1 device) and request r1 (1 device) together take 12Gi of counter set1/memory, "
            "of which 8Gi is left",
            "request r0 and request r1 together need more of counter set1/memory than is left",
        ),
        (
            {"slices": PARTS, "claims": [["r0 2 a"]]},
            "request r0 needs 2 devices, 2 are free, but together they take 12Gi of counter set1/memory, "
            "of which 8Gi is left",
            "request r0 finds enough free devices, but together they need more of counter set1/memory than is left",
        ),
        (
            {"slices": [*PARTS, {"pool": "p", "devices": ["d3 set1.memory-=7Gi"]}], "claims": [["r0 2 a"]]},
            "request r0 needs 2 devices, 3 are free, but any 2 of them take at least 12Gi of counter set1/memory, "
            "of which 8Gi is left",
            "request r0 finds enough free devices, but together they need more of counter set1/memory than is left",
        ),
        (
            {"slices": TWO_COUNTERS, "claims": [["r0 2 a"]]},
            "request r0 needs 2 devices, 3 are free, but cannot be used together: "
            "they take from counters set1/cores and set1/memory",
            "request r0 finds enough free devices, but they cannot be used together: "
            "they take from counters set1/cores and set1/memory",
        ),
        (
            one(["sh shared memory:10Gi"], "r0 a memory:6Gi", "r1 a memory:6Gi"),
            "requests r0 and r1 together need 12Gi of memory of device sh, of which 10Gi is left",
            "requests r0 and r1 together need more memory of shared devices than is left",
        ),
        (
            one(["sh shared memory:10"], "r0 a memory:3", "r1 a memory:4", allocated=["p/sh shared memory:4"]),
            "requests r0 and r1 together need 7 of memory of device sh, of which 6 is left",
            "requests r0 and r1 together need more memory of shared devices than is left",
        ),
        (
            one(["d1 shared memory:10", "d2 shared memory:6"], "r0 a memory:6", "r1 a memory:6", "r2 a memory:6"),
            "requests r0, r1 and r2 together need 18 of memory, of which 16 is left (d1 10, d2 6)",
            "requests r0, r1 and r2 together need more memory of shared devices than is left",
        ),
        (
            one(["d1 shared memory:10", "d2 shared memory:10"], "r0 a memory:6", "r1 a memory:6", "r2 a memory:6"),
            "requests r0, r1 and r2 need 6, 6 and 6 of memory, more than fits into what the devices have left "
            "(d1 10, d2 10)",
            "requests r0, r1 and r2 together need more memory of shared devices than is left",
        ),
        (
            one(["sh shared memory:10"], claims=[["r0 a memory:6"], ["r1 a memory:6"]]),
            "claim default/claim-0, request r0 and claim default/claim-1, request r1 together need 12 of memory "
            "of device sh, of which 10 is left",
            "claim default/claim-0, request r0 and claim default/claim-1, request r1 together need more memory "
            "of shared devices than is left",
        ),
        (
            one(["sh shared memory:10 cores:10"], "r0 a memory:6 cores:6", "r1 a memory:6 cores:6"),
            "request r0 (1 device) and request r1 (1 device) can be satisfied separately but not together: "
            "they need the same devices or capacity",
            "request r0 and request r1 can be satisfied separately but not together: "
            "they need the same devices or capacity",
        ),
        (
            constrained(["d1 a.example.com/x=1", "d2 a.example.com/x=2"], "match a.example.com/x", "gpu a", "nic a"),
            "request gpu (1 device) and request nic (1 device) have no attribute a.example.com/x in common "
            "on enough free devices (gpu: 1, 2; nic: 1, 2)",
            "request gpu and request nic have no attribute a.example.com/x in common",
        ),
        (
            constrained(["d1", "d2"], "match a.example.com/x", "gpu a"),
            "request gpu (1 device): no free device of request gpu has attribute a.example.com/x",
            "request gpu: no device of request gpu has attribute a.example.com/x",
        ),
        (
            constrained(["d1 a.example.com/x=1", "d2 a.example.com/x=1"], "distinct a.example.com/x", "gpu 2 a"),
            "request gpu (2 devices) must differ in attribute a.example.com/x, of which free devices have 1",
            "request gpu cannot differ in attribute a.example.com/x",
        ),
        (
            one(2, {"gpu": ["big 3 a", "small b"]}),
            "request gpu: none of its alternatives: big needs 3 devices, the node has 2; "
            "small needs 1 device, 0 of 2 devices are of class b",
            "request gpu: none of its alternatives: big needs more devices than the node has; "
            "small finds no device of class b",
        ),
        (
            {"slices": [{"pool": "p", "devices": 2, "of": 2}], "claims": [["gpu a"]]},
            "request gpu needs 1 device, but pool a.example.com/p is being updated: generation 1 has 1 of 2 slices",
            "request gpu would need devices of a pool that is being updated",
        ),
        (
            one(3, "gpu all a", allocated=["p/d0"]),
            "request gpu asks for all devices, 2 are free of 3 that match (1 in use)",
            "request gpu finds too few free devices (in use)",
        ),
        (
            one(40, "gpu 20 a", "nic 20 a"),
            "request gpu (20 devices) and request nic (20 devices) together ask for more than 32 devices, "
            "the limit of a claim",
            "request gpu and request nic together ask for more than 32 devices, the limit of a claim",
        ),
    ],
)
def test_a_conflict_is_described_in_one_sentence(read: Read, short: dict[str, Any], text: str, cause: str) -> None:
    found = conflict(read(**short))
    assert (found.text, found.cause) == (text, cause)


def test_blocked_is_what_cannot_be_had_alone(scene: Callable[..., Scene]) -> None:
    found = scene(**one(2, "r0 a", "r1 3 a"))
    fine, too_many = (found.seen[0, i][0] for i in (0, 1))
    assert blocked(found, *fine) is None
    assert blocked(found, *too_many) is not None


def test_a_node_with_devices_in_use_is_nearer_than_one_without(scene: Callable[..., Scene]) -> None:
    used, less, none = (
        distance(scene(**one(devices, "r0 2 a", allocated=held)))
        for devices, held in ((3, ["p/d0", "p/d1"]), (3, ["p/d0", "p/d1", "p/d2"]), ([], []))
    )
    assert used < less < none
    assert distance(scene(**one(3, "r0 2 a"))) == (0, 0)
