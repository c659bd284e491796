"""What keeps a single device from a single request."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.explain.standing import Scene

Make = Callable[..., Scene]


def kinds(scene: Scene) -> list[str]:
    ((_, seen),) = scene.seen[0, 0]
    return [each.kind.value for each in seen]


def one(devices: list[str], request: str = "r0 a", **short: Any) -> dict[str, Any]:
    return {"slices": [{"pool": "p", "devices": devices}], "claims": [[request]], **short}


@pytest.mark.parametrize(
    ("short", "expected"),
    [
        (one(["d1", "d2"], allocated=["p/d2"]), ["free", "in-use"]),
        (one(["d1"], "r0 a admin", allocated=["p/d1"]), ["free"]),
        (one(["d1"], "r0 b"), ["class-selector"]),
        (one(["d1 x=1", "d2 x=2", "d3"], "r0 a x=1"), ["free", "request-selector", "selector-error"]),
        (one(["d1 !NoSchedule", "d2 !NoSchedule"], "r0 a ~NoExecute", allocated=["p/d2"]), ["taint", "in-use"]),
        (one(["d1 !NoSchedule"], "r0 a ~NoSchedule"), ["free"]),
        (one(["d1 shared memory:8"], "r0 a memory:4", allocated=["p/d1 shared memory:5"]), ["capacity"]),
        (one(["d1 shared memory:8"], "r0 a memory:3", allocated=["p/d1 shared memory:5"]), ["free"]),
        (one(["d1 memory:8"], "r0 a disk:1"), ["capacity"]),
        (one(["d1 ?Ready"], without=["DeviceBindingAndStatus"]), ["binding-conditions"]),
        (one(["d1 shared"], allocated=["p/d1 shared"], without=["ConsumableCapacity"]), ["in-use"]),
    ],
)
def test_the_first_thing_that_applies_counts(scene: Make, short: dict[str, Any], expected: list[str]) -> None:
    assert kinds(scene(**short)) == expected


def test_counters_that_others_have_are_missing(scene: Make) -> None:
    slices = [
        {"pool": "p", "counters": {"set1": {"memory": "8Gi"}}},
        {"pool": "p", "devices": ["d1 set1.memory-=4Gi", "d2 set1.memory-=6Gi", "d3 set1.memory-=4Gi"]},
    ]
    assert kinds(scene(slices=slices, claims=[["r0 a"]], allocated=["p/d1"])) == ["in-use", "counters", "free"]


def test_devices_of_a_slice_can_be_for_another_node(scene: Make) -> None:
    slices = [{"pool": "p", "at": "devices", "devices": ["d1 @node-1", "d2 @node-2"]}]
    assert kinds(scene(slices=slices, claims=[["r0 a"]])) == ["free", "other-node"]


def test_all_is_as_many_as_match_and_have_the_capacity(scene: Make) -> None:
    found = scene(**one(["d1 memory:8", "d2 memory:1", "d3 memory:8"], "r0 all a memory:4", allocated=["p/d2", "p/d3"]))
    ((option, seen),) = found.seen[0, 0]
    assert [each.kind for each in seen] == [VerdictKind.FREE, VerdictKind.CAPACITY, VerdictKind.IN_USE]
    assert found.number(option, seen) == 2


def test_a_share_holds_the_counters_of_its_device_for_the_next_share(scene: Make) -> None:
    slices = [
        {"pool": "p", "counters": {"set1": {"memory": "8Gi"}}},
        {"pool": "p", "devices": ["d1 shared set1.memory-=6Gi bandwidth:10"]},
    ]
    for held in ("p/d1 shared", "p/d1 shared bandwidth:2"):
        assert kinds(scene(slices=slices, claims=[["r0 a bandwidth:2"]], allocated=[held])) == ["free"]
