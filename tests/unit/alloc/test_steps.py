from devlet.alloc.steps import Step
from tests.support.allocation.desk import Desk


def steps(desk: Desk) -> list[Step]:
    wanted = desk.allocator.read(desk.claims)
    search = desk.allocator.search(desk.node, wanted)
    assert search.run()
    return [chosen.step for claim in search.results for chosen in claim]


def test_a_step_names_its_request() -> None:
    slices = [{"pool": "p1", "devices": ["d1", "d2"]}]
    first, second = steps(Desk(slices=slices, claims=[["r0 a"], [{"r1": ["s0 a"]}]]))
    assert (first.claim, first.position, first.request, first.full_name) == (0, 0, "r0", "r0")
    assert (second.claim, second.request, second.full_name, second.is_sub) == (1, "r1", "r1/s0", True)
    assert not (first.is_all or first.is_admin or first.is_sub)
    assert first.where == "claim default/claim-0, request r0"


def test_amounts_are_computed_once_per_device() -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": ["d1 lanes:8 shared", "d2"]}], claims=[["r0 a lanes:2"]])
    (step,) = steps(desk)
    found = step.amounts(desk.entry("p1/d1"))
    assert not isinstance(found, str)
    assert [(each.name, str(each.consumed), each.limit) for each in found] == [("lanes", "2", 8 * 10**9)]
    assert step.amounts(desk.entry("p1/d1")) is found
    assert step.amounts(desk.entry("p1/d2")) == "has no capacity lanes"
