"""Bounded questions to the allocator."""

from collections.abc import Callable

from devlet.alloc.allocator import Allocator
from devlet.alloc.explain.trials import Trials
from devlet.alloc.problems import Problem, read_problem
from devlet.alloc.search import Limits
from tests.support.problems.generator import symmetric_problem

Read = Callable[..., Problem]


def test_invalid_claims_do_not_fit(read: Read) -> None:
    problem = read(slices=[{"pool": "p", "devices": 1}], claims=[["r0 a"], ["r0 2 a"], ["r0 nowhere"]])
    allocator, trials = Allocator(problem.inventory), Trials()
    answers = [trials.fits(allocator, problem.nodes[0], [claim]) for claim in problem.claims]
    assert answers == [True, False, False]


def test_after_the_budget_is_used_up_there_is_no_answer(read: Read) -> None:
    problem = read(slices=[{"pool": "p", "devices": 1}], claims=[["r0 a"]])
    allocator, trials = Allocator(problem.inventory), Trials(runs=1)
    assert [trials.fits(allocator, problem.nodes[0], problem.claims) for _ in range(2)] == [True, None]
    assert trials.is_spent


def test_a_search_that_is_given_up_is_no_answer() -> None:
    problem = read_problem(symmetric_problem(12, 4))
    trials = Trials(lambda: Limits(steps=3))
    assert trials.fits(Allocator(problem.inventory), problem.nodes[0], problem.claims) is None
