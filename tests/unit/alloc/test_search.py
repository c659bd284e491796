"""The order of the search, and that cutting it short changes nothing but how long it takes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.alloc import Limits, NoFit, Rules
from devlet.alloc.search import Exhausted
from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from tests.support.allocation.desk import Desk, words
from tests.support.allocation.shorthand import problem
from tests.support.problems.generator import mixed_problem, symmetric_problem

REFERENCE = Rules.reference()
BOTH_RULES = pytest.mark.parametrize("rules", [Rules(), REFERENCE], ids=["improved", "reference"])


def pool(*devices: str, name: str = "p1", **more: Any) -> Document:
    return {"pool": name, "devices": list(devices), **more}


# The order


@pytest.mark.spec("DA-3.5c")
def test_devices_are_tried_in_the_order_of_pools_slices_and_publication() -> None:
    slices = [pool("d1", name="p2"), pool("d3", "d2", name="p1")]
    assert Desk(slices=slices, claims=[["r0 3 a"]]).ask() == [["r0 p1/d3", "r0 p1/d2", "r0 p2/d1"]]


@pytest.mark.spec("DA-3.5d")
def test_an_earlier_choice_is_undone_for_a_later_request() -> None:
    slices = [pool("d1 kind=x", "d2 kind=y")]
    assert Desk(slices=slices, claims=[["r0 a", "r1 a kind=x"]]).ask() == [["r0 p1/d2", "r1 p1/d1"]]
    assert Desk(slices=slices, claims=[["r0 a"], ["r1 a kind=x"]]).ask() == [["r0 p1/d2"], ["r1 p1/d1"]]


@pytest.mark.spec("DA-3.5e")
def test_alternatives_are_tried_in_order_and_the_first_that_works_with_the_rest_wins() -> None:
    slices = [pool("d1 kind=x", "d2 kind=y")]
    assert Desk(slices=slices, claims=[[{"r0": ["s0 a kind=x", "s1 a"]}]]).ask() == [["r0/s0 p1/d1"]]
    both = [{"r0": ["s0 a kind=x", "s1 a kind=y"]}, "r1 a kind=x"]
    assert Desk(slices=slices, claims=[both]).ask() == [["r0/s1 p1/d2", "r1 p1/d1"]]


@pytest.mark.spec("DA-3.5f")
def test_one_request_never_takes_a_shared_device_twice_and_two_may() -> None:
    slices = [pool("d1 shared lanes:4")]
    assert not Desk(slices=slices, claims=[["r0 2 a lanes:1"]]).fits()
    assert Desk(slices=slices, claims=[["r0 a lanes:1", "r1 a lanes:1"]]).ask() == [["r0 p1/d1", "r1 p1/d1"]]


@pytest.mark.spec("DA-3.5g")
def test_too_many_results_lead_to_the_next_alternative() -> None:
    slices = [pool(*(f"d{i}" for i in range(40)))]
    found = Desk(slices=slices, claims=[["r0 30 a", {"r1": ["s0 3 a", "s1 2 a"]}]]).ask()
    assert isinstance(found, list)
    assert [each.split()[0] for each in found[0][30:]] == ["r1/s1", "r1/s1"]
    assert not Desk(slices=slices, claims=[["r0 30 a", {"r1": ["s0 3 a", "s1 4 a", "s2 2 a kind=x"]}]]).fits()


@pytest.mark.spec("DA-3.5h")
@BOTH_RULES
def test_all_that_a_constraint_forbids_is_an_error(rules: Rules) -> None:
    claim = {"requests": ["r0 all a"], "constraints": ["match x"]}
    text = "cannot add device a.example.com/p1/d2 because a claim constraint would not be satisfied"
    with pytest.raises(InvalidInput, match=text):
        Desk(slices=[pool("d1 x=1", "d2 x=2")], claims=[claim], rules=rules).ask()


# Taking a device


@pytest.mark.spec("DA-3.7a")
def test_counters_are_shared_by_all_devices_of_the_pool() -> None:
    slices = [pool("d1 s.n-=3", "d2 s.n-=2", "d3 s.n-=1"), {"pool": "p1", "counters": {"s": {"n": 4}}}]
    desk = Desk(slices=slices, claims=[["r0 a", "r1 a"]], rules=Rules(best_fit=False))
    assert desk.ask() == [["r0 p1/d1", "r1 p1/d3"]]
    assert not Desk(slices=slices, claims=[["r0 3 a"]]).fits()
    assert Desk(slices=slices, claims=[["r0 a"]], without=["PartitionableDevices"]).fits() is False


@pytest.mark.spec("DA-3.7a")
def test_a_shared_device_takes_its_counters_once() -> None:
    slices = [pool("d1 s.n-=3 shared", "d2 s.n-=2"), {"pool": "p1", "counters": {"s": {"n": 4}}}]
    desk = Desk(slices=slices, claims=[["r0 a"], ["r0 a"], ["r0 a"]], rules=REFERENCE)
    assert desk.ask() == [["r0 p1/d1"]] * 3


@pytest.mark.spec("DA-11.08")
def test_a_counter_set_that_is_over_consumed_blocks_only_its_own_devices() -> None:
    slices = [pool("d1 s.n-=3", "d2 s.n-=3", "d3 t.n-=1"), {"pool": "p1", "counters": {"s": {"n": 4}, "t": {"n": 1}}}]
    held = ["p1/d1", "p1/d2"]
    assert Desk(slices=slices, allocated=held, claims=[["r0 a"]]).ask() == [["r0 p1/d3"]]
    assert not Desk(slices=slices, allocated=held, claims=[["r0 a"]], rules=REFERENCE).fits()


@pytest.mark.spec("DA-11.09")
def test_admin_access_needs_nothing_and_takes_nothing_away() -> None:
    slices = [pool("d1 s.n-=4 lanes:2 shared"), {"pool": "p1", "counters": {"s": {"n": 4}}}]
    held = ["p1/d1 shared lanes:2"]
    assert Desk(slices=slices, allocated=held, claims=[["r0 a admin"]]).ask() == [["r0 p1/d1"]]
    assert not Desk(slices=slices, allocated=held, claims=[["r0 a admin"]], rules=REFERENCE).fits()
    both = [["r0 a admin"], ["r0 a"]]
    assert Desk(slices=[pool("d1")], claims=both).ask() == [["r0 p1/d1"]] * 2
    assert not Desk(slices=[pool("d1")], claims=both, rules=REFERENCE).fits()


@pytest.mark.spec("DA-3.5a")
@BOTH_RULES
def test_admin_access_gives_a_claim_each_device_once(rules: Rules) -> None:
    assert not Desk(slices=[pool("d1")], claims=[["r0 a admin", "r1 a admin"]], rules=rules).fits()
    assert Desk(slices=[pool("d1")], claims=[["r0 a admin"], ["r1 a admin"]], rules=rules).fits()


@pytest.mark.spec("DA-3.8e")
def test_shares_of_one_call_add_up_with_those_that_are_held() -> None:
    slices = [pool("d1 lanes:8 shared")]
    desk = Desk(slices=slices, allocated=["p1/d1 shared lanes:3"], claims=[["r0 a lanes:3"], ["r0 a lanes:2"]])
    assert desk.fits()
    desk = Desk(slices=slices, allocated=["p1/d1 shared lanes:3"], claims=[["r0 a lanes:3"], ["r0 a lanes:3"]])
    assert not desk.fits()


def test_a_share_is_the_whole_device_where_nothing_can_be_shared() -> None:
    slices = [pool("d1 shared")]
    desk = Desk(slices=slices, allocated=["p1/d1 shared"], claims=[["r0 a"]], without=["ConsumableCapacity"])
    assert not desk.fits()


# Cutting


def answer(document: Document, rules: Rules, *, cut: bool) -> object:
    desk = Desk(document=document, rules=rules)
    try:
        wanted, limits = desk.allocator.read(desk.claims), Limits(steps=20_000, patience=1)
        search = desk.allocator.search(desk.node, wanted, limits, cut=cut)
        return [[words(each) for each in chosen] for chosen in search.results] if search.run() else "no"
    except InvalidInput as e:
        return f"error: {e}"
    except Exhausted:
        return "exhausted"


def is_same(document: Document, rules: Rules) -> bool:
    """As far as the search ends at all without cutting."""
    plain = answer(document, rules, cut=False)
    return plain == "exhausted" or answer(document, rules, cut=True) == plain


@BOTH_RULES
@settings(max_examples=settings().max_examples * 3 // 5)
@given(seed=st.integers(0, 1 << 20))
def test_cutting_changes_no_answer_to_random_problems(rules: Rules, seed: int) -> None:
    assert is_same(mixed_problem(seed), rules)


KINDS = ["", "x=1", "x=2", "x=[1,2]", "s.n-=1", "s.n-=2", "shared lanes:2", "shared s.n-=1", "lanes:2"]
WISHES = ["1 a", "2 a", "3 a", "1 a lanes:1", "2 a lanes:1", "1 a admin", "all a lanes:1"]
REQUEST = st.sampled_from(WISHES) | st.lists(
    st.sampled_from([w for w in WISHES if "admin" not in w]), min_size=1, max_size=2
)


@st.composite
def tight(draw: st.DrawFn) -> Document:
    """Many devices of few kinds, and wishes that nearly use them up: what the cutting is for."""
    counts = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 3)), min_size=1, max_size=4))
    devices = [f"{letter}{i} {kind}" for letter, (kind, n) in zip("abcd", counts, strict=False) for i in range(n)]
    devices = draw(st.permutations(devices))
    claims: list[Document] = []
    for _ in range(draw(st.integers(1, 2))):
        requests: list[Any] = []
        for i, wish in enumerate(draw(st.lists(REQUEST, min_size=1, max_size=3))):
            if isinstance(wish, str):
                requests.append(f"r{i} {wish}")
            else:
                requests.append({f"r{i}": [f"s{j} {each}" for j, each in enumerate(wish)]})
        constraints = draw(
            st.lists(st.sampled_from(["match x", "distinct x", "match x of r0", "distinct x of r0,r1"]), max_size=1)
        )
        claims.append({"requests": requests, "constraints": constraints})
    slices = [pool(*devices), {"pool": "p1", "counters": {"s": {"n": draw(st.integers(1, 5))}}}]
    return problem({"case": "tight", "slices": slices, "claims": claims})


@BOTH_RULES
@settings(max_examples=settings().max_examples * 6 // 5)
@given(document=tight())
def test_cutting_changes_no_answer_to_tight_problems(rules: Rules, document: Document) -> None:
    assert is_same(document, rules)


# Families that would take for ever


def steps(rules: Rules = Rules(), limit: int = 100_000, **short: Any) -> int:
    """Of a search that ends with no."""
    outcome = Desk(rules=rules, **short).outcome(Limits(steps=limit))
    assert outcome == NoFit(steps=outcome.steps), "it fits, or the search did not end"
    return outcome.steps


@pytest.mark.spec("DA-11.01")
@BOTH_RULES
def test_identical_devices_are_counted_not_tried(rules: Rules) -> None:
    assert steps(rules, document=symmetric_problem(20, 10)) <= 50
    assert steps(rules, document=symmetric_problem(31, 1)) <= 50


@pytest.mark.spec("DA-11.02")
@BOTH_RULES
def test_identical_requests_and_claims_are_not_permuted(rules: Rules) -> None:
    slices = [pool(*(f"d{i}" for i in range(29)))]
    assert steps(rules, slices=slices, claims=[[f"r{i} 3 a" for i in range(10)]]) <= 50
    assert steps(rules, slices=slices, claims=[[f"r{i} a"] for i in range(30)]) <= 50
    shared = [pool(*(f"d{i} lanes:8 shared" for i in range(6)))]
    assert steps(rules, slices=shared, claims=[[f"r{i} a lanes:3" for i in range(13)]]) <= 1000


@pytest.mark.spec("DA-11.01")
@BOTH_RULES
def test_pigeons_of_two_classes_do_not_fit_into_too_few_holes(rules: Rules) -> None:
    devices = [f"{kind}{i} kind={kind} half={i % 2}" for kind in "xy" for i in range(10)]
    claim = [*(f"r{i} a kind=x" for i in range(8)), *(f"q{i} a half=0" for i in range(8))]
    assert steps(rules, slices=[pool(*devices)], claims=[claim]) <= 50


@pytest.mark.spec("DA-11.01")
@BOTH_RULES
@pytest.mark.parametrize("sizes", [(3, 5, 7, 11), tuple(range(3, 27))], ids=["few kinds", "all different"])
def test_a_knapsack_of_counters_is_weighed_before_it_is_packed(rules: Rules, sizes: tuple[int, ...]) -> None:
    devices = [f"d{i} s.n-={sizes[i % len(sizes)]}" for i in range(24)]
    slices = [pool(*devices), {"pool": "p1", "counters": {"s": {"n": 61}}}]
    assert steps(rules, slices=slices, claims=[["r0 14 a"]]) <= 50
    assert steps(rules, slices=slices, claims=[[f"r{i} 2 a" for i in range(7)]]) <= 50


GROUPS = [pool(*(f"d{i} x={i % 12} y={i % 8}" for i in range(96)))]


@pytest.mark.spec("DA-11.01")
@pytest.mark.parametrize(
    "claim",
    [
        {"requests": ["r0 9 a"], "constraints": ["match x"]},
        {"requests": ["r0 3 a", "r1 3 a", "r2 3 a"], "constraints": ["match x"]},
        {"requests": ["r0 5 a", "r1 5 a"], "constraints": ["match x", "match x of r0"]},
        {"requests": ["r0 9 a", "r1 a"], "constraints": ["distinct y of r0", "match x of r1"]},
        {"requests": ["r0 13 a"], "constraints": ["distinct x"]},
    ],
)
def test_groups_that_are_too_small_are_not_tried_one_after_the_other(claim: Document) -> None:
    assert steps(slices=GROUPS, claims=[claim]) <= 50


@pytest.mark.spec("DA-11.01")
def test_the_reference_s_own_constraints_are_not_counted_but_what_failed_is_remembered() -> None:
    claim = {"requests": ["r0 3 a", "r1 3 a", "r2 3 a"], "constraints": ["match x"]}
    assert steps(REFERENCE, slices=GROUPS, claims=[claim]) <= 10_000


@pytest.mark.spec("DA-11.01")
def test_partitions_that_block_each_other_are_remembered_by_kind() -> None:
    """Weighing does not help: two counters, and each alone would suffice."""
    devices = [f"d{i} s.n-={1 + i % 2} s.m-={2 - i % 2}" for i in range(24)]
    slices = [pool(*devices), {"pool": "p1", "counters": {"s": {"n": 23, "m": 23}}}]
    assert steps(slices=slices, claims=[[f"r{i} 2 a" for i in range(8)]]) <= 10_000
