"""Copies for trying something out."""

from collections.abc import Callable

from devlet.alloc.allocator import Allocator, Fit
from devlet.alloc.explain.copies import Difference, copy_for
from devlet.alloc.problems import Problem, read_problem
from devlet.errors import InvalidInput
from tests.support.problems.generator import mixed_problem

Read = Callable[..., Problem]


def fits(allocator: Allocator, problem: Problem) -> bool:
    return isinstance(allocator.allocate(problem.nodes[0], problem.claims), Fit)


def test_a_claim_is_released_in_the_copy_only(read: Read) -> None:
    problem = read(slices=[{"pool": "p", "devices": 1}], claims=[["r0 a"]], allocated=["p/d0"])
    allocator = Allocator(problem.inventory)
    assert fits(copy_for(allocator, problem.nodes[0].name, Difference([("default", "held-0")])), problem)
    assert not fits(copy_for(allocator, problem.nodes[0].name, Difference()), problem)
    assert not fits(allocator, problem)


def test_a_pool_is_complete_in_the_copy_only(read: Read) -> None:
    problem = read(slices=[{"pool": "p", "devices": 1, "of": 2}], claims=[["r0 a"]])
    allocator = Allocator(problem.inventory)
    (key,) = {entry.pool for entry in problem.inventory.slices()}
    assert fits(copy_for(allocator, problem.nodes[0].name, Difference(complete=key)), problem)
    assert not fits(allocator, problem)


def test_a_copy_without_a_difference_answers_the_same() -> None:
    for seed in range(40):
        problem = read_problem(mixed_problem(seed))
        allocator = Allocator(problem.inventory, problem.features)
        for node in problem.nodes:
            answers = []
            for each in (allocator, copy_for(allocator, node.name, Difference())):
                try:
                    outcome = each.allocate(node, problem.claims)
                    chosen = outcome.chosen if isinstance(outcome, Fit) else ()
                    answers.append(str([[c.entry.identity for c in claim] for claim in chosen]))
                except InvalidInput as e:
                    answers.append(str(e))
            assert answers[0] == answers[1], f"seed {seed}, node {node.name}"
