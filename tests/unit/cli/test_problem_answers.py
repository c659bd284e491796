import io
import json
from pathlib import Path
from typing import Any

import pytest

from devlet.alloc.features import Rules
from devlet.cli.problem_answers import Answers
from devlet.testing.problems import bench_problem, symmetric_problem

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
    assert (answer["name"], answer["placed"]) == (f"{mode}-3x4", bench_fit(3, 4, 7))


def bench_fit(nodes: int, devices: int, claims: int) -> int:
    """How many of the claims can be placed, taken one by one on a problem of its own."""
    document = bench_problem(nodes, devices, claims=claims, mode="fill")
    document["nodes"] = document["nodes"][:nodes]
    from devlet.alloc.allocator import Allocator, Fit
    from devlet.alloc.problems import read_problem
    from devlet.alloc.results import held_devices

    problem = read_problem(document)
    allocator = Allocator(problem.inventory, rules=Rules.reference())
    placed = 0
    for claim in problem.claims:
        outcomes = (allocator.allocate(node, [claim]) for node in problem.nodes)
        fit = next((outcome for outcome in outcomes if isinstance(outcome, Fit)), None)
        if fit:
            placed += 1
            devices_of = held_devices(fit.chosen[0], lambda: "share")
            problem.inventory.hold_devices(claim.metadata.namespace, claim.metadata.name, devices_of)
    return placed


def test_a_claim_that_is_wrong_is_not_placed_and_does_not_stop_the_others() -> None:
    problem = bench_problem(2, 4, claims=2, mode="fill")
    problem["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "missing"
    (answer,) = Asked(problem).answers
    assert answer["placed"] == 1


def endless() -> Document:
    """Nothing can be cut from it: a selector fails on the last device, which must be reported if it is reached."""
    problem = symmetric_problem(30, 15)
    devices = problem["slices"][0]["spec"]["devices"]
    devices.append({"name": "zz"})
    return problem


def test_a_search_that_takes_too_long_is_a_no_that_says_so() -> None:
    asked = Asked(endless(), seconds=0.05)
    (answer,) = asked.answers
    (only,) = answer["answers"]
    if only["outcome"] == "no-fit" and "error" not in only:
        pytest.skip("the search is quicker than its limit")
    assert only["outcome"] in ("no-fit", "error")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("nonsense", "file:2: not JSON"),
        ("[1]", "file:2: expected a JSON object"),
        ("[" * 100_000, "file:2: not JSON"),
        ('{"name": "x", "nodes": 5}', "file:2: problem 'x'"),
        ('{"name": "x", "slices": [{"spec": {"devices": 5}}]}', "file:2: slices[0]"),
        ('{"name": "x", "mode": "random"}', "file:2: problem 'x': no mode 'random': use one of fill, fill-rotate"),
        ('{"name": "x", "features": {"Gpus": true}}', "file:2: unknown allocator feature 'Gpus'"),
    ],
)
def test_a_line_that_is_no_problem_is_reported_with_its_number(line: str, error: str) -> None:
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
