"""However expensive the selectors are and whoever evaluates them: who does not want to wait need not."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc import Limits, Rules, Scan
from devlet.alloc.allocator import Allocator, NoFit
from devlet.alloc.explain import explain
from devlet.alloc.placement import place
from devlet.alloc.problems import answer_problem, read_problem
from devlet.cel.program import Interrupted
from tests.support.problems.generator import bench_problem

COUNTED = "lists.range(400).all(a, lists.range(400).all(b, a + b >= 0)) && device.driver != ''"
GENERATED = "lists.range(4000).all(a, a >= 0) && device.driver != ''"


def after(count: int) -> Callable[[], bool]:
    """Says yes from the so-many-th question on."""
    asked = itertools.count(1)
    return lambda: next(asked) >= count


def problem(expression: str, **more: Any) -> dict[str, Any]:
    made = bench_problem(3, 100, claims=2, mode="fill")
    for claim in made["claims"]:
        (request,) = claim["spec"]["devices"]["requests"]
        request["exactly"] |= {"selectors": [{"cel": {"expression": expression}}], **more}
    return made


@pytest.mark.parametrize("expression", [COUNTED, GENERATED])
@pytest.mark.parametrize("mode", ["fill", "scheduler"])
def test_claims_whose_selectors_take_too_long_are_not_placed(expression: str, mode: Any) -> None:
    read = read_problem(problem(expression))
    scan = Scan(Allocator(read.inventory), read.nodes)
    assert list(place(scan, read.claims, mode, lambda: "", Limits(give_up=after(1)))) == [None, None]


@pytest.mark.parametrize("expression", [COUNTED, GENERATED])
def test_a_search_whose_selectors_take_too_long_does_not_fit_and_says_why(expression: str) -> None:
    read = read_problem(problem(expression))
    outcome = Allocator(read.inventory).allocate(read.nodes[0], read.claims, Limits(give_up=after(1)))
    assert isinstance(outcome, NoFit) and outcome.is_exhausted
    assert expression in outcome.reason


@pytest.mark.parametrize("rules", [Rules(), Rules.reference()], ids=["improved", "reference"])
def test_selectors_on_a_pool_that_is_being_updated_have_a_time_limit(rules: Rules) -> None:
    made = problem(COUNTED, allocationMode="All", count=0)
    for slice in made["slices"]:
        slice["spec"]["pool"]["resourceSliceCount"] = 2
    answers = answer_problem(read_problem(made), rules, lambda: Limits(give_up=after(1)))
    expected = "no-fit" if rules.only_matching_pools else "error"
    assert {answer["outcome"] for answer in answers} == {expected}


@pytest.mark.parametrize("expression", [COUNTED, GENERATED])
def test_an_explanation_that_takes_too_long_is_reported_as_unknown(expression: str) -> None:
    read = read_problem(problem(expression))
    found = explain(Allocator(read.inventory), read.nodes, read.claims[:1], limits=lambda: Limits(give_up=lambda: True))
    assert not found.fits and {node.outcome for node in found.nodes} == {"unknown"}


def test_an_interrupted_evaluation_is_repeated_later() -> None:
    read = read_problem(problem(GENERATED))
    allocator = Allocator(read.inventory)
    selectors = allocator.selectors.set_of((), (GENERATED,))
    slices = list(read.inventory.slices())
    with pytest.raises(Interrupted):
        allocator.selectors.match_many(slices, selectors, lambda: True)
    allocator.selectors.match_many(slices[:1], selectors)
    assert allocator.selectors.match(slices[0], selectors).matching.bit_count() == 100
