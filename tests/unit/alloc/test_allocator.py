"""What the allocator promises whatever is asked: answers, limits, input that makes no sense."""

from typing import Any

import pytest

from devlet.alloc import Allocator, Fit, Limits, NoFit, Rules
from devlet.alloc.problems import read_problem
from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from tests.support.allocation.desk import Desk
from tests.support.problems.generator import mixed_problem, symmetric_problem

ONE = [{"pool": "p1", "devices": ["d1", "d2"]}]
BOTH_RULES = pytest.mark.parametrize("rules", [Rules(), Rules.reference()], ids=["improved", "reference"])


@pytest.mark.spec("DA-3.1a")
def test_there_is_one_result_per_claim_in_their_order() -> None:
    outcome = Desk(slices=ONE, claims=[["r0 a"], [], ["r0 a"]]).outcome()
    assert isinstance(outcome, Fit)
    assert [len(chosen) for chosen in outcome.chosen] == [1, 0, 1]


@pytest.mark.spec("DA-3.1a")
def test_no_claims_fit_everywhere() -> None:
    assert Desk(slices=ONE).ask() == []


@pytest.mark.spec("DA-3.1b")
def test_no_fit_names_invalid_pools() -> None:
    assert Desk(slices=ONE, claims=[["r0 3 a"]]).ask() == NoFit()
    broken = [{"pool": "p1", "devices": ["d1", "d1"]}]
    outcome = Desk(slices=broken, claims=[["r0 a"]]).outcome()
    assert isinstance(outcome, NoFit)
    assert (outcome.reason, outcome.is_exhausted) == ("invalid resource pools were encountered", False)
    assert Desk(slices=[*broken, {"pool": "p2", "devices": ["d1"]}], claims=[["r0 a"]]).ask() == [["r0 p2/d1"]]


def test_errors_are_reported_in_the_order_of_the_claims() -> None:
    with pytest.raises(InvalidInput, match="claim default/claim-0: number of requested devices 33"):
        Desk(claims=[["r0 33 a"], ["r0 c"]]).ask()
    with pytest.raises(InvalidInput, match="claim default/claim-0, constraint #1: empty constraint"):
        Desk(claims=[{"requests": ["r0 a"], "constraints": ["match x", "nothing"]}, ["r0 c"]]).ask()


def test_an_error_of_the_claims_does_not_grow_with_the_nodes_that_are_asked() -> None:
    desk, depths = Desk(claims=[["r0 c"]]), []
    wanted = desk.allocator.read(desk.claims)
    for _ in range(3):
        with pytest.raises(InvalidInput) as caught:
            desk.allocator.allocate_wanted(desk.node, wanted)
        depths.append(len(caught.traceback))
    assert len(set(depths)) == 1


@pytest.mark.parametrize(
    ("request_", "is_single"),
    [
        ("r0 2 a", True),
        ("r0 a kind=x ~NoExecute", True),
        ("r0 33 a", False),
        ("r0 all a", False),
        ("r0 a admin", False),
        ("r0 a lanes:1", False),
        ({"r0": ["s0 a"]}, False),
    ],
)
def test_only_one_plain_request_needs_no_search(request_: Any, is_single: bool) -> None:
    desk = Desk(claims=[[request_]])
    assert (desk.allocator.read(desk.claims).single is not None) is is_single


def test_claims_with_more_than_one_request_or_constraints_need_a_search() -> None:
    for claims in ([["r0 a", "r1 a"]], [["r0 a"], ["r0 a"]], [{"requests": ["r0 a"], "constraints": ["match x"]}], []):
        desk = Desk(claims=claims)
        assert desk.allocator.read(desk.claims).single is None


# Nothing is changed


def shown(desk: Desk) -> list[object]:
    return [
        (str(each.identity), each.is_taken, each.shares, each.consumed, desk.inventory.holders(each.identity))
        for slice_ in desk.inventory.slices()
        for each in slice_.devices
    ] + [desk.inventory.revisions.now, sorted(desk.inventory.classes)]


@BOTH_RULES
@pytest.mark.parametrize("seed", range(2_000_000, 2_000_040))
def test_allocating_changes_nothing_and_is_repeatable(seed: int, rules: Rules) -> None:
    desk = Desk(document=mixed_problem(seed), rules=rules)
    before = shown(desk)
    answers = []
    for limits in (Limits(), Limits(steps=3), Limits()):
        try:
            answers.append(desk.ask(limits))
        except InvalidInput as e:
            answers.append([[str(e)]])
        assert shown(desk) == before
    assert answers[0] == answers[2]


# Budgets


def test_a_search_ends_at_its_step_limit_and_reports_it() -> None:
    desk = Desk(slices=ONE, claims=[["r0 2 a"]])
    assert desk.outcome(Limits(steps=1)) == NoFit("the search was given up after 2 steps", is_exhausted=True, steps=2)
    assert desk.outcome(Limits(steps=2)) != NoFit()
    assert desk.ask() == [["r0 p1/d1", "r0 p1/d2"]]


def hard() -> Desk:
    """Every device is of a kind of its own, and what is missing cannot be counted."""
    devices = [f"d{i} s.n-={10 + i} s.m-={40 - i} lanes:{i + 1}" for i in range(30)]
    slices = [{"pool": "p1", "devices": devices}, {"pool": "p1", "counters": {"s": {"n": 299, "m": 299}}}]
    return Desk(slices=slices, claims=[["r0 12 a"]])


def test_a_search_ends_when_give_up_returns_true() -> None:
    asked = []

    def give_up() -> bool:
        asked.append(True)
        return len(asked) >= 3

    desk = hard()
    before = shown(desk)
    outcome = desk.outcome(Limits(give_up=give_up))
    assert isinstance(outcome, NoFit)
    assert (outcome.is_exhausted, len(asked)) == (True, 3)
    assert shown(desk) == before


def test_give_up_is_called_now_and_then() -> None:
    outcome = hard().outcome(Limits(steps=5000, give_up=lambda: False))
    assert isinstance(outcome, NoFit)
    assert (outcome.is_exhausted, outcome.steps) == (True, 5001)


# Input that makes no sense, or too much of it


@pytest.mark.long
@BOTH_RULES
def test_thousands_of_claims_in_one_call_are_allocated(rules: Rules) -> None:
    count = 2000
    slices = [{"pool": "p1", "devices": count}]
    desk = Desk(slices=slices, claims=[["r0 a"]] * count, rules=rules)
    outcome = desk.outcome()
    assert isinstance(outcome, Fit)
    assert len({chosen[0].entry for chosen in outcome.chosen}) == count
    assert not Desk(slices=slices, claims=[["r0 a"]] * (count + 1), rules=rules).fits()


@BOTH_RULES
def test_thousands_of_requests_in_one_claim_are_refused(rules: Rules) -> None:
    desk = Desk(slices=ONE, claims=[[f"r{i} a" for i in range(3000)]], rules=rules)
    with pytest.raises(InvalidInput, match="number of requested devices 3000 exceeds the claim limit of 32"):
        desk.ask()


@BOTH_RULES
def test_a_pool_of_ten_thousand_devices_is_searched(rules: Rules) -> None:
    devices = [f"d{i} n={i % 100}" for i in range(10_000)]
    desk = Desk(slices=[{"pool": "p1", "devices": devices}], claims=[["r0 32 a n=99"], ["r0 a"]], rules=rules)
    answer = desk.ask()
    assert isinstance(answer, list)
    assert (answer[0][-1], answer[1]) == ("r0 p1/d3199", ["r0 p1/d0"])


BROKEN: dict[str, tuple[Document, str]] = {
    "unknown class": ({"claims": [["r0 c"]]}, "request r0: could not retrieve device class c"),
    "negative capacity": ({"slices": ONE, "claims": [["r0 a lanes:-1"]]}, "capacity lanes: -1 is negative"),
    "all of a pool that is updated": (
        {"slices": [{"pool": "p1", "of": 2, "devices": ["d1"]}], "claims": [["r0 all a"]]},
        "resource pool a.example.com/p1 is currently being updated",
    ),
    "all of a pool with duplicates": (
        {"slices": [{"pool": "p1", "devices": ["d1", "d1"]}], "claims": [["r0 all a"]]},
        "resource pool a.example.com/p1 is currently invalid",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_text_names_the_claim_and_what_is_wrong(name: str) -> None:
    short, text = BROKEN[name]
    with pytest.raises(InvalidInput, match=rf"^claim default/claim-0.*{text}"):
        Desk(**short).ask()


@pytest.mark.parametrize("odd", ["x=", "version=v1.x", "lanes:-1", "lanes:4(default=1,min=1,step=0) shared", "!"])
def test_an_invalid_device_does_not_prevent_others_from_being_allocated(odd: str) -> None:
    slices = [{"pool": "p1", "devices": ["d1", "d2 kind=x"]}]
    desk = Desk(slices=slices, claims=[["r0 a kind=x"]])
    (device,) = Desk(slices=[{"pool": "p1", "devices": [f"d1 {odd}"]}]).document["slices"][0]["spec"]["devices"]
    if odd.startswith("version"):
        device["attributes"] = {"version": {"version": "one"}}
    desk.document["slices"][0]["spec"]["devices"][0] = device
    assert Desk(document=desk.document).ask() == [["r0 p1/d2"]]


def test_the_symmetric_problem_is_solved_quickly() -> None:
    problem = read_problem(symmetric_problem(20, 10))
    outcome = Allocator(problem.inventory).allocate(problem.nodes[0], problem.claims)
    assert isinstance(outcome, NoFit)
    assert outcome.steps < 100
