"""What is proposed, before it is tried."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.allocator import Allocator, Fit
from devlet.alloc.explain.conflict import wishes_of
from devlet.alloc.explain.explanation import find_changes
from devlet.alloc.explain.proposals import missing_classes, proposals
from devlet.alloc.explain.standing import Scene
from devlet.alloc.explain.verdicts import Elsewhere
from devlet.alloc.problems import Problem

GPU = 'device.attributes["a.example.com"]'


def texts(scene: Scene) -> list[str]:
    found = proposals(scene, wishes_of(scene.claims.claims), Elsewhere(scene.allocator))
    return [proposal.text for proposal in sorted(found, key=lambda each: each.size)]


def one(devices: list[str] | int, request: Any, **short: Any) -> dict[str, Any]:
    return {"slices": [{"pool": "p", "devices": devices}], "claims": [[request]], "classes": ["a"], **short}


@pytest.mark.parametrize(
    ("short", "expected"),
    [
        (one(2, "r0 3 a"), ["ask for 2 instead of 3 in request r0", "ask for 1 instead of 3 in request r0"]),
        (
            one(["d1", "d2"], "r0 all a", allocated=["p/d1"]),
            [
                "release claim default/held-0, which holds d1",
                "ask for 1 instead of all in request r0",
            ],
        ),
        (one(["d1 !x=y:NoSchedule"], "r0 a"), ["let request r0 tolerate x=y:NoSchedule"]),
        (
            one(["d1 model=x"], f'r0 a if {GPU}.modle == "x"'),
            [
                f"write {GPU}.model instead of {GPU}.modle in selector #0 of request r0",
                "remove selector #0 of request r0",
            ],
        ),
        (
            one(["d1 x=1 y=1"], f"r0 a if {GPU}.x == 1 && ({GPU}.y == 2 || false)"),
            [
                f"remove {GPU}.x == 1 from selector #0 of request r0",
                f"remove {GPU}.y == 2 || false from selector #0 of request r0",
                "remove selector #0 of request r0",
            ],
        ),
        (one(["d1 memory:8"], "r0 a memory:9"), ["ask for 8 of memory instead of 9 in request r0"]),
        (
            one(["d1 memory:8"], "r0 a", classes=["a", {"aa": {"if": "true"}}]),
            ["use device class aa instead of a in request r0"],
        ),
    ],
)
def test_every_kind_of_obstacle_has_its_proposals(
    scene: Callable[..., Scene], short: dict[str, Any], expected: list[str]
) -> None:
    assert texts(scene(**short)) == expected


def test_removing_a_constraint_and_waiting_for_a_pool_are_proposed(scene: Callable[..., Scene]) -> None:
    claim = {"requests": ["r0 a"], "constraints": ["match a.example.com/x"]}
    found = texts(scene(slices=[{"pool": "p", "devices": 1, "of": 2}], claims=[claim], classes=["a"]))
    assert found == [
        "wait until pool a.example.com/p is complete: it is being updated: generation 1 has 1 of 2 slices",
        "remove constraint #0 (matchAttribute a.example.com/x)",
    ]


def test_a_class_with_a_similar_name_is_proposed_for_a_missing_one(read: Callable[..., Problem]) -> None:
    problem = read(claims=[["r0 gpu-exampel"]])
    (found,) = missing_classes(problem.claims, ["gpu-example", "other"])
    assert found.text == "use device class gpu-example in request r0: there is no gpu-exampel"
    exactly = found.claims[0].spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.device_class_name == "gpu-example"


@pytest.mark.parametrize(
    ("device", "amounts", "expected"),
    [
        (
            "sh shared memory:10Gi",
            ("6Gi", "6Gi"),
            ["4Gi of memory instead of 6Gi in request r0", "4Gi of memory instead of 6Gi in request r1"],
        ),
        (
            "sh shared memory:10",
            ("8", "5"),
            ["5 of memory instead of 8 in request r0", "2 of memory instead of 5 in request r1"],
        ),
        (
            "sh shared memory:10(default=3,min=3,step=3,max=9)",
            ("6", "6"),
            ["3 of memory instead of 6 in request r0", "3 of memory instead of 6 in request r1"],
        ),
        ("sh shared memory:10", ("10", "10"), []),
        ("d1 memory:10", ("6", "6"), []),
    ],
)
def test_the_amount_that_other_requests_leave_of_a_shared_device_is_proposed(
    scene: Callable[..., Scene], device: str, amounts: tuple[str, str], expected: list[str]
) -> None:
    requests = [f"r{i} a memory:{amount}" for i, amount in enumerate(amounts)]
    found = texts(scene(slices=[{"pool": "p", "devices": [device]}], claims=[requests], classes=["a"]))
    assert found == [f"ask for {each}" for each in expected]


def test_a_smaller_amount_of_a_shared_device_was_tried(read: Callable[..., Problem]) -> None:
    requests = [f"r{i} a memory:6Gi" for i in range(3)]
    slices = [{"pool": "p", "devices": ["d1 shared memory:10Gi", "d2 shared memory:9Gi"]}]
    problem = read(slices=slices, claims=[requests], classes=["a"])
    allocator = Allocator(problem.inventory, problem.features)
    found = find_changes(allocator, problem.nodes, problem.claims)
    assert [each.change.text for each in found] == [
        f"ask for 4Gi of memory instead of 6Gi in request r{i}" for i in range(3)
    ]
    assert all(isinstance(allocator.allocate(each.node, each.proposal.claims), Fit) for each in found)
