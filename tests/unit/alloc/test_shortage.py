"""What counting tells. That it never tells too much is what test_search.py asks of random problems."""

from typing import Any

import pytest

from devlet.alloc.candidates import Candidates
from devlet.alloc.constraints import Constraint, make_constraint
from devlet.alloc.kinds import find_kinds
from devlet.alloc.shortage import Shortage
from tests.support.allocation.desk import Desk


def is_short(*devices: str, requests: Any, exact: bool = True, constraints: Any = (), counters: Any = None) -> bool:
    sets = [{"pool": "p1", "counters": {"s": counters}}] if counters else []
    claim = {"requests": requests, "constraints": list(constraints)}
    desk = Desk(slices=[{"pool": "p1", "devices": list(devices)}, *sets], claims=[claim])
    allocator, layout = desk.allocator, desk.allocator.layout(desk.node)
    candidates = Candidates(desk.inventory, allocator.selectors, allocator.features, allocator.rules)
    steps = [candidates.steps(0, desk.claims[0], allocator.read(desk.claims).requests[0], layout)]
    made: list[Constraint | None] = [
        make_constraint(wanted, exact=exact, lists=True) for wanted in desk.claims[0].spec.devices.constraints
    ]
    of_claim = [constraint for constraint in made if constraint]
    shortage = Shortage(steps, [of_claim], find_kinds(steps, [of_claim]), lambda key: layout.by_key[key].available())
    return shortage.is_certain()


def test_devices() -> None:
    assert is_short("d1", "d2", requests=["r0 2 a", "r1 a"])
    assert not is_short("d1", "d2", requests=["r0 a", "r1 a"])
    assert is_short("d1 x=1", "d2 x=2", "d3 x=2", requests=["r0 a x=1", "r1 a x=1"])


def test_alternatives_admin_access_and_shares_are_not_counted() -> None:
    assert not is_short("d1", requests=["r0 a", {"r1": ["s0 a", "s1 2 a"]}])
    assert not is_short("d1", requests=["r0 a", "r1 a admin"])
    assert not is_short("d1 shared", requests=["r0 a", "r1 a"])


def test_values_that_must_differ() -> None:
    assert is_short("d1 x=1", "d2 x=1", "d3 x=2", requests=["r0 3 a"], constraints=["distinct x"])
    assert is_short("d1 x=[1,2]", "d2 x=[2,1]", "d3 x=2", requests=["r0 3 a"], constraints=["distinct x"])
    assert not is_short("d1 x=1", "d2 x=1", "d3 x=2", requests=["r0 2 a"], constraints=["distinct x"])
    assert not is_short("d1 x=1", "d2 x=1", requests=["r0 a", "r1 a"], constraints=["distinct x of r0"])


def test_a_value_that_must_be_common() -> None:
    assert is_short("d1 x=1", "d2 x=1", "d3 x=2", requests=["r0 2 a", "r1 a"], constraints=["match x"])
    assert not is_short("d1 x=1", "d2 x=1", "d3 x=[2,1]", requests=["r0 2 a", "r1 a"], constraints=["match x"])
    assert not is_short("d1 x=1", "d2 x=1", "d3", requests=["r0 2 a", "r1 a"], constraints=["match x of r0"])
    assert not is_short("d1", requests=["r0 0 a"], constraints=["match x"])


def test_constraints_of_the_reference_are_not_counted() -> None:
    assert not is_short("d1 x=1", "d2 x=1", requests=["r0 2 a"], constraints=["distinct x"], exact=False)


@pytest.mark.parametrize(
    ("requests", "short"),
    [
        (["r0 3 a"], False),
        (["r0 4 a"], True),
        (["r0 a", "r1 a", "r2 2 a"], True),
        (["r0 a kind=big"], False),
        (["r0 2 a kind=big"], True),
        (["r0 a kind=big", "r1 a kind=free"], False),
        (["r0 a kind=big", "r1 a kind=small"], True),
        (["r0 a kind=big admin", "r1 a kind=small"], False),
    ],
)
def test_counters(requests: list[str], short: bool) -> None:
    kinds = ["s.n-=2 kind=small", "s.n-=2 kind=small", "s.n-=4 kind=big", "s.n-=4 kind=big", "kind=free"]
    devices = [f"d{i} {words}" for i, words in enumerate(kinds)]
    assert is_short(*devices, requests=requests, counters={"n": 4}) is short


def test_counters_of_requests_together() -> None:
    devices = [f"d{i} s.n-={i}" for i in range(1, 7)]
    assert not is_short(*devices, requests=["r0 a", "r1 a", "r2 a"], counters={"n": 6})
    assert is_short(*devices, requests=["r0 a", "r1 a", "r2 a"], counters={"n": 5})


def test_a_share_may_take_no_counters() -> None:
    assert not is_short("d1 s.n-=4 shared", "d2 s.n-=4", requests=["r0 a", "r1 a"], counters={"n": 4})
