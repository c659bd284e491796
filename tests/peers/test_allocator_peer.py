"""Our program around the scheduler's allocator gives the answers that the vectors have, and places claims."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.problems.generator import bench_problem, random_problem, symmetric_problem

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers]

PROJECT = Path(__file__).resolve().parents[2]
VECTORS = PROJECT / "tests" / "vectors"

Document = dict[str, Any]


@pytest.fixture
def program(peers: "Peers") -> Path:
    peers.need("dra-allocate")
    return peers.binaries / "dra-allocate"


def run(program: Path, text: str, *flags: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([program, *flags], input=text, capture_output=True, text=True, timeout=120)


def ask(program: Path, problem: Document, *flags: str) -> Document:
    answer = run(program, json.dumps(problem), *flags)
    assert answer.returncode == 0, answer.stderr
    found: Document = json.loads(answer.stdout)
    return found


@pytest.mark.parametrize("name", ["allocator_problems.jsonl", "allocator_problems_lists.jsonl"])
def test_it_agrees_with_every_problem(program: Path, name: str) -> None:
    text = (VECTORS / name).read_text()
    answer = run(program, text)
    found = {each["name"]: each["answers"] for each in map(json.loads, answer.stdout.splitlines())}
    assert found == {each["name"]: each["expected"] for each in map(json.loads, text.splitlines())}


def test_the_problems_with_lists_come_out_again_as_they_are(program: Path) -> None:
    command = [sys.executable, "-m", "tools.make_problems", "--check"]
    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stderr) == (0, "")


def bound(**device: object) -> Document:
    """One claim for one device, which is the only one and has these fields."""
    problem = symmetric_problem(1, 1)
    problem["slices"][0]["spec"]["devices"][0] |= device
    problem["claims"][0]["spec"]["devices"]["requests"].pop()
    return problem


def test_a_complete_answer_has_conditions_node_and_search_calls(program: Path) -> None:
    conditions = {"bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/failed"]}
    full = ask(program, bound(**conditions), "--full", "--bench")
    (answer,) = full["answers"]
    (result,) = answer["results"][0]["devices"]["results"]
    assert result | conditions == result
    (term,) = answer["results"][0]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["n0"]
    assert full["searchCalls"] > 0 and full["seconds"] > 0
    assert set(ask(program, bound())) == {"name", "answers"}


def test_shares_have_the_same_id_in_every_complete_answer(program: Path) -> None:
    shared = bound(allowMultipleAllocations=True)
    first, second = (ask(program, shared, "--full")["answers"] for _ in range(2))
    assert first == second
    assert first[0]["allocations"][0][0]["shared"] is True


def test_a_feature_can_be_off_by_a_flag_or_for_one_problem(program: Path) -> None:
    problem = bound(bindingConditions=["example.com/ready"], bindingFailureConditions=["example.com/failed"])

    def outcome(problem: Document, *flags: str) -> str:
        return str(ask(program, problem, *flags)["answers"][0]["outcome"])

    assert outcome(problem) == "fit"
    assert outcome(problem, "--features", "-DeviceBindingAndStatus") == "no-fit"
    assert outcome(problem | {"features": ["AdminAccess", "PrioritizedList"]}) == "no-fit"
    assert outcome(problem | {"features": []}, "--features", "AdminAccess") == "fit"


def test_a_pool_that_is_invalid_is_a_reason_of_the_node(program: Path) -> None:
    problem = bound()
    problem["slices"][0]["spec"]["devices"] *= 2
    assert ask(program, problem)["answers"] == [{"node": "n0", "outcome": "no-fit"}]
    assert ask(program, problem, "--full")["answers"][0]["reason"] == "invalid resource pools were encountered"


@pytest.mark.parametrize("flags", [(), ("--parallel", "1")])
@pytest.mark.parametrize("mode", ["fill", "fill-rotate", "scheduler"])
def test_every_mode_places_every_claim_there_is_a_device_for(program: Path, mode: str, flags: tuple[str, ...]) -> None:
    found = ask(program, bench_problem(120, 4, claims=121, mode=mode), *flags)
    assert (found["name"], found["placed"], found["done"]) == (f"{mode}-120x4", 120, 121)
    assert found["claimsPerSecond"] == pytest.approx(121 / found["seconds"])


def test_it_gives_up_when_the_time_is_up(program: Path) -> None:
    (answer,) = ask(program, symmetric_problem(18, 9), "--max-seconds", "0.2")["answers"]
    assert (answer["outcome"], answer["error"]) == ("error", "filter operation aborted: context deadline exceeded")
    slow = ask(program, bench_problem(500, 4, mode="scheduler"), "--max-seconds", "0.2")
    assert slow["done"] == slow["placed"] < 500


@pytest.mark.parametrize(
    ("problem", "flags", "code", "error"),
    [
        ({"name": "p", "mode": "empty"}, (), 2, 'problem p: no mode "empty"'),
        ({"features": ["DeviceTains"]}, (), 2, 'no feature "DeviceTains"'),
        ({"nodes": 5}, (), 1, "nodes"),
        ({}, ("--variant", "old"), 1, "no allocator available"),
        ({}, ("--parallel", "0"), 2, "--parallel is 0"),
    ],
)
def test_what_it_cannot_do_is_an_error(
    program: Path, problem: Document, flags: tuple[str, ...], code: int, error: str
) -> None:
    answer = run(program, json.dumps(problem), *flags)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert answer.stderr.startswith("dra-allocate: ") and error in answer.stderr


def test_the_reference_answers_random_problems_at_once(program: Path) -> None:
    text = "\n".join(json.dumps(random_problem(seed)) for seed in range(300))
    answer = run(program, text, "--bench", "--max-seconds", "10")
    assert answer.returncode == 0, answer.stderr
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    outcomes = [each["outcome"] for problem in found for each in problem["answers"]]
    assert all(outcomes.count(kind) > 30 for kind in ("fit", "no-fit", "error"))
    assert not any("filter operation aborted" in line for line in answer.stdout.splitlines())
