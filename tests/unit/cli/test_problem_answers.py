import io
import json
from pathlib import Path
from typing import Any

import pytest

from devlet.alloc.features import Rules
from devlet.cli.problem_answers import Answers
from tests.support.problems.generator import bench_problem, symmetric_problem

Document = dict[str, Any]

VECTORS = Path(__file__).parents[2] / "vectors" / "allocator_problems.jsonl"


class Asked:
    """What was answered, and what was reported."""

    def __init__(
        self, *lines: Document | str, seconds: float = 10, bench: bool = False, rules: Rules | None = None
    ) -> None:
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        self.errors: list[str] = []
        answers = Answers(rules or Rules.reference(), seconds, bench=bench, report=self.errors.append)
        self.answers = list(answers.of(io.BytesIO(text.encode()), "file"))
        self.failed = answers.failed


def test_a_problem_is_answered_for_each_node_as_the_reference_did() -> None:
    with VECTORS.open() as lines:
        problems = [json.loads(next(lines)) for _ in range(12)]
    for problem, answer in zip(problems, Asked(*problems).answers, strict=True):
        assert set(answer) == {"name", "answers"}
        outcomes = [(each["node"], each["outcome"], each.get("allocations")) for each in answer["answers"]]
        expected = [(each["node"], each["outcome"], each.get("allocations")) for each in problem["expected"]]
        assert (answer["name"], outcomes) == (problem["name"], expected)
        assert all(set(each) <= {"node", "outcome", "allocations", "error"} for each in answer["answers"])


def test_seconds_are_said_for_a_benchmark() -> None:
    (answer,) = Asked(symmetric_problem(4, 2), bench=True).answers
    assert set(answer) == {"name", "answers", "seconds"} and answer["seconds"] > 0


@pytest.mark.parametrize("mode", ["fill", "fill-rotate", "scheduler"])
def test_claims_are_placed_one_after_the_other(mode: str) -> None:
    (answer,) = Asked(bench_problem(3, 4, claims=7, mode=mode)).answers
    assert set(answer) == {"name", "placed", "seconds"}
    assert (answer["name"], answer["placed"]) == (f"{mode}-3x4", 3)  # four devices each, of which a node has four


def test_a_claim_that_is_wrong_is_not_placed_and_does_not_stop_the_others() -> None:
    problem = bench_problem(2, 4, claims=2, mode="fill")
    problem["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "missing"
    (answer,) = Asked(problem).answers
    assert answer["placed"] == 1


def endless(mode: str = "") -> Document:
    """Half of 40 devices that all differ. Two counters allow one sum only, which is odd, and all amounts are even."""
    problem = symmetric_problem(40, 20) | ({"mode": mode} if mode else {})
    (slice,) = problem["slices"]
    slice["spec"]["pool"]["resourceSliceCount"] = 2
    amounts, most = [2000 + 2 * i * i for i in range(40)], 10_000
    for amount, device in zip(amounts, slice["spec"]["devices"], strict=True):
        taken = {"c": {"value": str(amount)}, "d": {"value": str(most - amount)}}
        device["consumesCounters"] = [{"counterSet": "s", "counters": taken}]
    odd = sum(amounts[10:30]) + 1
    counters = {"name": "s", "counters": {"c": {"value": str(odd)}, "d": {"value": str(20 * most - odd)}}}
    spec = {key: value for key, value in slice["spec"].items() if key != "devices"} | {"sharedCounters": [counters]}
    problem["slices"].append({"metadata": {"name": "counters"}, "spec": spec})
    del problem["claims"][0]["spec"]["devices"]["requests"][1:]
    return problem


def test_a_search_that_takes_too_long_is_a_no_that_says_so() -> None:
    (answer,) = Asked(endless(), seconds=0.05).answers
    (only,) = answer["answers"]
    assert only["outcome"] == "no-fit" and "the search was given up after" in only["error"]


def test_a_claim_whose_search_takes_too_long_is_not_placed_and_the_answer_says_so() -> None:
    (answer,) = Asked(endless("fill"), seconds=0.05).answers
    assert (answer["placed"], answer["error"]) == (0, "searches abandoned after 0.05 s: 1")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("nonsense", "file:2: not JSON"),
        ("[1]", "file:2: expected a JSON object"),
        ("[" * 100_000, "file:2: not JSON"),
        ('{"name": "x", "nodes": 5}', "file:2: problem 'x'"),
        ('{"name": "x", "slices": [{"spec": {"devices": 5}}]}', "file:2: problem 'x': slices[0]"),
        ('{"name": "x", "mode": "random"}', "file:2: problem 'x': unknown mode 'random': use one of fill, fill-rotate"),
        ('{"name": "x", "features": {"Gpus": true}}', "file:2: problem 'x': unknown allocator feature 'Gpus'"),
    ],
)
def test_a_line_that_is_not_a_problem_is_reported_with_its_number(line: str, error: str) -> None:
    asked = Asked(symmetric_problem(2, 1), line, symmetric_problem(3, 1))
    names = [answer["name"] for answer in asked.answers]
    assert names[0] == "symmetric-2-1" and names[-1] == "symmetric-3-1"
    assert len(asked.errors) == asked.failed == 1 and error in asked.errors[0], asked.errors


def test_a_problem_with_a_wrong_object_is_an_error_on_each_of_its_nodes() -> None:
    problem = symmetric_problem(2, 1) | {"classes": [{"metadata": 5}]}
    (answer,) = Asked(problem).answers
    assert [(each["node"], each["outcome"]) for each in answer["answers"]] == [("n0", "error")]
    assert "classes[0]" in answer["answers"][0]["error"]


def test_empty_lines_are_nothing() -> None:
    asked = Asked("", symmetric_problem(2, 1), "  ")
    assert len(asked.answers) == 1 and not asked.failed
