"""The verified scenarios of the specification's appendix A: tests/scenarios/alloc/appendix_a.yaml."""

from dataclasses import replace
from pathlib import Path

import pytest

from devlet.alloc.problems import solve_problem
from tests.support.allocation.cases import Case, load
from tests.support.allocation.check import IMPROVED, REFERENCE, check
from tests.support.allocation.selectors import selector_matches

pytestmark = pytest.mark.spec("DA-A")

ROWS = 34

# Answers to problems are repeatable, so all share IDs in them are the same.
NUMBERED = replace(IMPROVED, unique_shares=False)

CASES = load(Path(__file__).parents[2] / "scenarios" / "alloc" / "appendix_a.yaml")


def row(case: Case) -> str:
    return case.name.split()[0]


def verified(case: Case) -> object:
    return pytest.param(case, id=case.name, marks=pytest.mark.spec(f"DA-{row(case)}"))


def improved(case: Case) -> object:
    return pytest.param(case, id=case.name, marks=pytest.mark.spec(case.improvement))


def test_every_row_has_a_case() -> None:
    assert sorted({row(case) for case in CASES}) == [f"A.{number:02}" for number in range(1, ROWS + 1)]


@pytest.mark.parametrize("case", [verified(case) for case in CASES])
def test_the_answer_is_that_of_the_reference(case: Case) -> None:
    (answer,) = solve_problem(case.problem, reference_compatible=True)
    assert case.expected.differences(answer) == []
    if answer["outcome"] == "fit":
        matches = selector_matches(case.problem)
        assert check(case.problem, answer["node"], answer["results"], matches, REFERENCE) == []


@pytest.mark.parametrize("case", [improved(case) for case in CASES if case.improved])
def test_an_improvement_changes_the_answer(case: Case) -> None:
    (answer,) = solve_problem(case.problem, reference_compatible=False)
    assert case.improved
    assert case.improved.differences(answer) == []
    assert case.expected.differences(answer) != []


@pytest.mark.parametrize("case", [case for case in CASES if not case.improved], ids=lambda case: case.name)
def test_without_an_improvement_the_outcome_stays(case: Case) -> None:
    (answer,) = solve_problem(case.problem, reference_compatible=False)
    assert answer["outcome"] == case.expected.outcome
    assert case.expected.error in answer.get("error", "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_allocations_with_improvements_obey_all_rules(case: Case) -> None:
    (answer,) = solve_problem(case.problem, reference_compatible=False)
    results = answer.get("results")
    if results is not None:
        assert check(case.problem, answer["node"], results, selector_matches(case.problem), NUMBERED) == []
