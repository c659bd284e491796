"""The counter or capacity that all choices of devices overdraw."""

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import pytest

from devlet.alloc.allocator import NoFit
from devlet.alloc.explain.overdraft import Options, capacity_overdraft, counter_overdraft, left_beside
from devlet.alloc.explain.standing import Scene
from devlet.objects.values.quantity import NANO

Make = Callable[..., Scene]


def parts(costs: tuple[str, ...], *requests: Any, **short: Any) -> dict[str, Any]:
    """Devices that take so much of 8 each."""
    devices = [f"d{i} set1.memory-={cost}" for i, cost in enumerate(costs)]
    slices = [{"pool": "p", "counters": {"set1": {"memory": 8}}}, {"pool": "p", "devices": devices}]
    return {"slices": slices, "claims": [list(requests)], "classes": ["a"], **short}


def requests_of(scene: Scene) -> list[Options]:
    return list(scene.seen.values())


@pytest.mark.parametrize(
    ("short", "needed", "left", "is_forced"),
    [
        (parts(("4", "6"), "r0 2 a"), 10, 8, True),
        (parts(("4", "6", "5"), "r0 2 a"), 9, 8, False),
        (parts(("4", "6"), "r0 a", "r1 a"), 10, 8, True),
        (parts(("2", "4", "6"), "r0 2 a", allocated=["p/d0"]), 10, 6, True),
        (parts(("5", "5", "1"), "r0 all a"), 11, 8, True),
        (parts(("5 shared", "5 shared"), "r0 2 a"), 10, 8, True),
    ],
)
def test_the_least_that_any_choice_takes_is_reported(
    scene: Make, short: dict[str, Any], needed: int, left: int, is_forced: bool
) -> None:
    made = scene(**short)
    found = counter_overdraft(made, requests_of(made))
    assert found is not None
    assert (found.name, found.is_forced) == ("set1/memory", is_forced)
    assert (found.needed // NANO, found.left // NANO) == (needed, left)


@pytest.mark.parametrize(
    "short",
    [
        parts(("4", "6", "4"), "r0 2 a"),
        parts(("5 shared", "6"), "r0 a", "r1 a"),
        parts(("5", "6"), "r0 a", "r1 a admin"),
        parts(("5", "6"), {"r0": ["s0 2 a", "s1 a"]}),
    ],
)
def test_a_counter_that_suffices_for_some_choice_is_not_blamed(scene: Make, short: dict[str, Any]) -> None:
    made = scene(**short)
    assert counter_overdraft(made, requests_of(made)) is None


def test_counters_of_the_same_name_are_distinguished_by_their_pool(scene: Make) -> None:
    slices: list[Any] = [{"pool": pool, "counters": {"set1": {"memory": 8}}} for pool in ("p", "q")]
    slices += [{"pool": pool, "devices": ["d1 set1.memory-=5", "d2 set1.memory-=5"]} for pool in ("p", "q")]
    made = scene(slices=slices, claims=[["r0 4 a"]])
    found = counter_overdraft(made, requests_of(made))
    assert found is not None
    assert found.name == "set1/memory in pool a.example.com/p"


def test_claims_that_overdraw_a_counter_never_fit(scene: Make) -> None:
    blamed = 0
    for costs in combinations_with_replacement(("1", "3", "5", "5 shared"), 4):
        for requests in (
            ["r0 2 a"],
            ["r0 3 a"],
            ["r0 a", "r1 2 a"],
            ["r0 a", {"r1": ["s0 2 a", "s1 a"]}],
            ["r0 all a"],
        ):
            made = scene(**parts(costs, *requests))
            if counter_overdraft(made, requests_of(made)):
                blamed += 1
                outcome = made.allocator.allocate(made.layout.node, made.claims.claims)
                assert isinstance(outcome, NoFit), (costs, requests)
    assert blamed > 40


def shared(devices: list[str], *requests: str, **short: Any) -> dict[str, Any]:
    return {"slices": [{"pool": "p", "devices": devices}], "claims": [list(requests)], "classes": ["a"], **short}


def test_a_shared_device_is_reported_with_the_amounts_needed_and_left(scene: Make) -> None:
    made = scene(**shared(["d1 shared memory:10"], "r0 a memory:6", "r1 a", allocated=["p/d1 shared memory:0"]))
    assert capacity_overdraft(made, requests_of(made)) is not None
    made = scene(**shared(["d1 shared memory:10Gi"], "r0 a memory:6Gi", "r1 a memory:7Gi"))
    found = capacity_overdraft(made, requests_of(made))
    assert found is not None
    assert (found.name, str(found.total), str(found.total_left)) == ("memory", "13Gi", "10Gi")
    assert [(device, str(left)) for device, left in found.left] == [("d1", "10Gi")]


@pytest.mark.parametrize(
    "short",
    [
        shared(["d1 shared memory:10", "d2 memory:10"], "r0 a memory:6", "r1 a memory:6", "r2 a memory:6"),
        shared(["d1 shared memory:10"], "r0 a memory:6", "r1 a memory:6 admin"),
        shared(["d1 shared memory:10 cores:1"], "r0 a memory:6 cores:1", "r1 a memory:6 cores:1"),
        shared(["d1 shared memory:10"], "r0 a", "r1 a", without=["ConsumableCapacity"]),
    ],
)
def test_a_capacity_is_not_blamed_if_something_else_may_be_the_reason(scene: Make, short: dict[str, Any]) -> None:
    made = scene(**short)
    assert capacity_overdraft(made, requests_of(made)) is None


@pytest.mark.parametrize(
    ("capacity", "left"),
    [
        ("10", [4]),
        ("10(default=1,values=1|3|6)", [3]),
        ("10(default=3,min=3,step=3)", [3]),
        ("10(default=5,min=5)", []),
    ],
)
def test_what_is_left_beside_others_is_an_amount_that_the_policy_allows(
    scene: Make, capacity: str, left: list[int]
) -> None:
    made = scene(**shared([f"d1 shared memory:{capacity}"], "r0 a memory:6", "r1 a memory:6"))
    option, seen = made.seen[0, 1][0]
    assert list(left_beside(made, option, seen)) == [("memory", each * NANO) for each in left]
