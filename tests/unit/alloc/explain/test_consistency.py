"""Explanations never disagree with the allocator: random problems of every kind."""

import pytest

from devlet.alloc.allocator import Allocator, Fit
from devlet.alloc.explain import VerdictKind, explain
from devlet.alloc.explain.changes import tried
from devlet.alloc.explain.conflict import wishes_of, with_only
from devlet.alloc.explain.explanation import find_changes
from devlet.alloc.explain.standing import look
from devlet.alloc.features import Rules
from devlet.alloc.problems import Problem, read_problem
from devlet.alloc.search import Limits
from devlet.errors import InvalidInput
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.node import Node
from tests.support.problems.generator import THEMES, mixed_problem

SEEDS = [
    pytest.param(range(2), id="few"),
    pytest.param(range(2, 20), id="many", marks=[pytest.mark.long]),
]


def limits() -> Limits:
    """Some problems take a million steps; these are about something else."""
    return Limits(steps=4_000)


def outcome(allocator: Allocator, node: Node, claims: list[ResourceClaim] | tuple[ResourceClaim, ...]) -> str:
    try:
        found = allocator.allocate(node, claims, limits())
    except InvalidInput:
        return "error"
    if isinstance(found, Fit):
        return "fit"
    return "unknown" if found.is_exhausted else "no-fit"


def allocators(problem: Problem) -> list[Allocator]:
    return [Allocator(problem.inventory, problem.features, rules) for rules in (Rules(), Rules.reference())]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("theme", THEMES)
def test_explain_says_fits_exactly_when_the_allocator_does(theme: str, seeds: range) -> None:
    for seed in seeds:
        problem = read_problem(mixed_problem(seed, [theme]))
        for allocator in allocators(problem):
            found = explain(allocator, problem.nodes, problem.claims, limits=limits, all_nodes=True)
            answers = {node.name: outcome(allocator, node, problem.claims) for node in problem.nodes}
            assert {report.node: report.outcome for report in found.nodes} == answers, f"seed {seed}"
            assert found.fits == ("fit" in answers.values())
            assert sum(count for _, count in found.causes) == sum(each != "fit" for each in answers.values())


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("theme", THEMES)
def test_a_conflict_can_be_satisfied_without_any_one_of_its_wishes(theme: str, seeds: range) -> None:
    for seed in seeds:
        problem = read_problem(mixed_problem(seed + 1000, [theme]))
        allocator = Allocator(problem.inventory, problem.features)
        wishes = {wish.text: wish for wish in wishes_of(problem.claims)}
        for report in explain(allocator, problem.nodes, problem.claims, limits=limits, all_nodes=True).nodes:
            if report.conflict is None:
                continue
            node = next(node for node in problem.nodes if node.name == report.node)
            parts = [wishes[text] for text in report.conflict.wishes]
            assert outcome(allocator, node, with_only(problem.claims, parts)) != "fit", f"seed {seed}"
            for left_out in parts:
                rest = [part for part in parts if part is not left_out]
                assert outcome(allocator, node, with_only(problem.claims, rest)) in ("fit", "unknown"), f"seed {seed}"


@pytest.mark.long
def test_what_does_not_fit_has_a_conflict() -> None:
    for seed in range(200):
        problem = read_problem(mixed_problem(seed + 2000))
        allocator = Allocator(problem.inventory, problem.features)
        found = explain(allocator, problem.nodes, problem.claims, limits=limits, all_nodes=True)
        assert all(report.conflict for report in found.nodes if report.outcome == "no-fit"), f"seed {seed}"


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_change_makes_it_fit(theme: str, seeds: range) -> None:
    for seed in seeds:
        document = mixed_problem(seed + 3000, [theme])
        problem = read_problem(document)
        allocator = Allocator(problem.inventory, problem.features)
        found = find_changes(allocator, problem.nodes, problem.claims, limits)
        assert len(found) <= 5
        for each in found:
            fresh = Allocator(read_problem(document).inventory, problem.features)
            again = tried(fresh, each.node, each.proposal)
            assert outcome(again, each.node, tuple(each.proposal.claims)) == "fit", f"seed {seed}: {each.change.text}"


@pytest.mark.long
def test_at_least_a_third_of_the_unsolvable_problems_get_a_suggestion() -> None:
    helped = total = 0
    for seed in range(150):
        problem = read_problem(mixed_problem(seed + 4000))
        found = explain(Allocator(problem.inventory, problem.features), problem.nodes, problem.claims, limits=limits)
        total += not found.fits
        helped += bool(found.changes)
    assert helped * 3 >= total


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_device_that_is_chosen_was_free_for_its_request(theme: str, seeds: range) -> None:
    for seed in seeds:
        problem = read_problem(mixed_problem(seed + 5000, [theme]))
        for allocator in allocators(problem):
            wanted = allocator.read(problem.claims)
            for node in problem.nodes:
                if outcome(allocator, node, problem.claims) != "fit":
                    continue
                fit = allocator.allocate_wanted(node, wanted, limits())
                assert isinstance(fit, Fit)
                scene = look(allocator, allocator.layout(node), wanted)
                for chosen in (each for claim in fit.chosen for each in claim):
                    options = scene.seen[chosen.step.claim, chosen.step.position]
                    seen = next(seen for option, seen in options if option.wanted is chosen.step.alternative)
                    kind = next(each.kind for each in seen if each.entry is chosen.entry)
                    assert kind is VerdictKind.FREE, f"seed {seed}: {chosen.entry}"
