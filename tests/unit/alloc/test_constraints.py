from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.alloc import Rules
from devlet.alloc.constraints import Constraint, attribute_values, make_constraint
from devlet.alloc.inventory import DeviceEntry
from devlet.objects.types.claim import DeviceConstraint
from tests.support.allocation.desk import Desk

X = "a.example.com/x"


def made(kind: str, *, exact: bool = True, lists: bool = True) -> Constraint:
    wanted = DeviceConstraint(match_attribute=X) if kind == "match" else DeviceConstraint(distinct_attribute=X)
    constraint = make_constraint(wanted, exact=exact, lists=lists)
    assert constraint
    return constraint


def added(constraint: Constraint, devices: Sequence[str], request: str = "r") -> list[bool]:
    desk = Desk(slices=[{"pool": "p1", "devices": [f"d{i} {words}" for i, words in enumerate(devices)]}])
    return [constraint.add(desk.entry(f"p1/d{i}"), request) for i in range(len(devices))]


@pytest.mark.spec("DA-3.9a")
@pytest.mark.parametrize(
    ("devices", "accepted"),
    [
        (["x=1", "x=1", "x=2", "x=1"], [True, True, False, True]),
        (["x=1", "x='1'"], [True, False]),
        (["x=v1.0.0", "x='1.0.0'"], [True, False]),
        (["", "x=1"], [False, True]),
        (["x=", "x=1"], [False, True]),
        (["x=1", "a.example.com/x=1"], [True, True]),
        (["b.example.com/x=1", "y=1"], [False, False]),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_match_means_one_type_and_value(devices: list[str], accepted: list[bool], exact: bool) -> None:
    assert added(made("match", exact=exact), devices) == accepted


@pytest.mark.spec("DA-3.9b")
@pytest.mark.parametrize("exact", [True, False])
def test_lists_match_if_they_have_something_in_common(exact: bool) -> None:
    devices = ["x=[1,2,3]", "x=[2,3]", "x=3", "x=2", "x=['3']"]
    assert added(made("match", exact=exact), devices) == [True, True, True, False, False]


@pytest.mark.spec("DA-3.9c")
def test_distinct_means_that_no_two_are_the_same() -> None:
    assert added(made("distinct"), ["x=1", "x=2", "x=1", "x='1'", ""]) == [True, True, False, True, False]


@pytest.mark.spec("DA-3.9d")
def test_lists_are_distinct_if_they_have_nothing_in_common() -> None:
    assert added(made("distinct"), ["x=[1,2]", "x=[3]", "x=2", "x=[4,3]"]) == [True, True, False, False]


@pytest.mark.spec("DA-3.9e")
def test_the_reference_compares_neighbours_of_one_request_only() -> None:
    assert added(made("distinct", exact=False), ["x=1", "x=2", "x=1"]) == [True, True, True]


@pytest.mark.spec("DA-11.10")
def test_distinct_means_pairwise() -> None:
    slices = [{"pool": "p1", "devices": ["d1 x=1", "d2 x=2", "d3 x=1"]}]
    claim = {"requests": ["r0 3 a"], "constraints": ["distinct x"]}
    assert Desk(slices=slices, claims=[claim], rules=Rules.reference()).ask() == [["r0 p1/d1", "r0 p1/d2", "r0 p1/d3"]]
    assert not Desk(slices=slices, claims=[claim]).fits()


@pytest.mark.spec("DA-11.10")
def test_values_lost_by_an_intersection_come_back() -> None:
    slices = [{"pool": "p1", "devices": ["d1 x=[1,2]", "d2 x=[1]", "d3 x=[2]", "d4 x=[2]"]}]
    claim = {"requests": ["r0 3 a"], "constraints": ["match x"]}
    assert not Desk(slices=slices, claims=[claim], rules=Rules.reference()).fits()
    assert Desk(slices=slices, claims=[claim]).ask() == [["r0 p1/d1", "r0 p1/d3", "r0 p1/d4"]]


@pytest.mark.spec("DA-3.9f")
@pytest.mark.parametrize(
    ("requests", "covers"), [((), True), (("r",), True), (("r/s",), True), (("r/t",), False), (("q", "r"), True)]
)
def test_a_constraint_covers_requests_alternatives_or_all(requests: tuple[str, ...], covers: bool) -> None:
    constraint = make_constraint(DeviceConstraint(match_attribute=X, requests=requests), exact=True, lists=True)  # type: ignore[arg-type]
    assert constraint
    assert constraint.covers("r", "r/s") is covers


def test_a_constraint_of_an_unknown_kind_is_none() -> None:
    assert make_constraint(DeviceConstraint(), exact=True, lists=True) is None


@pytest.mark.spec("DA-3.9g")
def test_an_attribute_has_its_exact_name_or_the_bare_one_in_the_drivers_domain() -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": ["d1 x=1 a.example.com/x=2", "d2 x=1", "d3 b.example.com/x=3"]}])
    found = [attribute_values(desk.entry(f"p1/d{i}"), X, lists=True) for i in (1, 2, 3)]
    assert found == [frozenset({("ints", 2)}), frozenset({("ints", 1)}), None]


def test_lists_have_no_values_where_their_gate_is_off() -> None:
    device = Desk(slices=[{"pool": "p1", "devices": ["d1 x=[1,2]"]}]).entry("p1/d1")
    assert attribute_values(device, X, lists=True) == frozenset({("ints", 1), ("ints", 2)})
    assert attribute_values(device, X, lists=False) == frozenset()


VALUES = st.lists(st.sampled_from(["x=1", "x=2", "x=[1,2]", "x=[2,3]", "x='1'", ""]), max_size=5)


@given(VALUES, st.data())
def test_only_the_present_devices_count(devices: list[str], data: st.DataObject) -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": [f"d{i} {words}" for i, words in enumerate(devices)]}])
    for kind in ("match", "distinct"):
        constraint = made(kind)
        there: list[DeviceEntry] = []
        for i in range(len(devices)):
            entry = desk.entry(f"p1/d{i}")
            if constraint.add(entry, "r"):
                there.append(entry)
            if data.draw(st.booleans()) and there:
                constraint.remove(there.pop(), "r")
            values = [attribute_values(each, X, lists=True) or frozenset() for each in there]
            if kind == "match":
                assert not values or frozenset.intersection(*values)
            else:
                assert not any(a & b for a, b in combinations(values, 2))
        fresh = made(kind)
        assert all(fresh.add(each, "r") for each in there)
        assert fresh.state() == constraint.state()


@pytest.mark.parametrize("kind", ["match", "distinct"])
def test_the_reference_can_be_put_back_into_a_state(kind: str) -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": ["d1 x=[1,2]", "d2 x=[2]", "d3 x=[3]"]}])
    constraint = made(kind, exact=False)
    constraint.add(desk.entry("p1/d1"), "r")
    state = constraint.state()
    constraint.add(desk.entry("p1/d2" if kind == "match" else "p1/d3"), "q")
    assert constraint.state() != state
    constraint.reset(state)
    assert constraint.state() == state


def test_the_reference_restores_what_holds_one_value_or_one_device() -> None:
    desk = Desk(slices=[{"pool": "p1", "devices": ["d1 x=[1,2]", "d2 x=2"]}])
    several, single = [desk.entry("p1/d1")], [desk.entry("p1/d2")]
    assert made("match", exact=False).restores(single, 5)
    assert not made("match", exact=False).restores(several, 1)
    assert made("distinct", exact=False).restores(several, 1)
    assert not made("distinct", exact=False).restores(single, 2)
    assert made("match").restores(several, 5) and made("distinct").restores(several, 5)
