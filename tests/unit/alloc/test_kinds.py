from typing import Any

from devlet.alloc import Limits
from devlet.alloc.candidates import Candidates
from devlet.alloc.constraints import Constraint, make_constraint
from devlet.alloc.kinds import find_kinds
from devlet.alloc.search import PATIENCE
from devlet.alloc.steps import Step
from devlet.objects.types.claim import DeviceConstraint
from tests.support.allocation.desk import Desk


def steps(desk: Desk) -> list[list[list[Step]]]:
    allocator = desk.allocator
    candidates = Candidates(desk.inventory, allocator.selectors, allocator.features, allocator.rules)
    wanted = allocator.read(desk.claims)
    return [
        candidates.steps(i, claim, requests, allocator.layout(desk.node))
        for i, (claim, requests) in enumerate(zip(wanted.claims, wanted.requests, strict=True))
    ]


def kinds(*devices: str, claims: Any = (("r0 a",),), match: str = "", **more: Any) -> list[int]:
    """A number for each device, the same if they are alike."""
    desk = Desk(slices=[{"pool": "p1", "devices": list(devices)}], claims=[list(claim) for claim in claims], **more)
    wanted = DeviceConstraint(match_attribute=match)
    constraints: list[Constraint | None] = [make_constraint(wanted, exact=True, lists=True)] if match else []
    found = find_kinds(steps(desk), [[each for each in constraints if each]])
    return [found[desk.entry(f"p1/{text.split()[0]}")] for text in devices]


def test_devices_are_alike_if_nothing_that_is_asked_for_differs() -> None:
    assert kinds("d1 x=1 lanes:8", "d2 x=2 lanes:4", "d3") == [0, 0, 0]


def test_devices_differ_by_what_the_search_looks_at() -> None:
    assert kinds("d1", "d2 shared") == [0, 1]
    assert kinds("d1 lanes:8", "d2 lanes:4", claims=[["r0 a lanes:1"]]) == [0, 1]
    assert kinds("d1 x=1", "d2 x=2", "d3 x=1", match="a.example.com/x") == [0, 1, 0]
    assert kinds("d1 x=1", "d2 x=2", claims=[["r0 a"], ["r1 a x=2"]]) == [0, 1]
    assert kinds("d1 shared lanes:4", "d2 shared lanes:4", allocated=["p1/d1 shared lanes:1"]) == [0, 1]


def test_devices_of_two_drivers_differ_where_names_may_carry_the_domain() -> None:
    slices = [{"pool": "p1", "devices": ["d1 lanes:8"]}, {"pool": "b/p1", "devices": ["d1 lanes:8"]}]
    classes = [{"any": {"if": "true"}}]
    desk = Desk(slices=slices, classes=classes, claims=[["r0 any a.example.com/lanes:1"]])
    assert len(set(find_kinds(steps(desk), [[]]).values())) == 2


def test_a_device_of_another_driver_does_not_stand_in_for_one_that_is_asked_for_by_name() -> None:
    """Wrongly alike, having either would be remembered as hopeless once one of them is."""
    count = 6
    slices = [
        {"pool": "p1", "devices": [f"d{i} lanes:8" for i in range(count)]},
        {"pool": "b/p1", "devices": [f"d{i} lanes:8" for i in range(count)]},
    ]
    claims = [[f"r0 {count} any", f"r1 {count} any a.example.com/lanes:1"]]
    desk = Desk(slices=slices, classes=[{"any": {"if": "true"}}], claims=claims)
    assert desk.fits()
    assert desk.outcome(Limits()).steps > PATIENCE
