"""What tests/scenarios/alloc expects is what the reference answers; the checker finds nothing wrong in it."""

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.objects.documents import Document
from tests.support.allocation.cases import Case, load
from tests.support.allocation.check import REFERENCE, check
from tests.support.allocation.selectors import selector_matches

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers]

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted((TESTS / "scenarios" / "alloc").glob("*.yaml"))
VECTORS = sorted((TESTS / "vectors").glob("allocator_problems*.jsonl"))


@pytest.fixture
def program(peers: "Peers") -> Path:
    peers.need("dra-allocate")
    return peers.binaries / "dra-allocate"


def ask(program: Path, problems: list[Document]) -> list[Document]:
    """Complete answers. The program wants features that are off with a minus."""
    asked = [
        problem | ({"features": [f"-{name}" for name in problem["features"]]} if "features" in problem else {})
        for problem in problems
    ]
    text = "\n".join(json.dumps(problem) for problem in asked)
    done = subprocess.run([program, "--full"], input=text, capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def single(found: Document) -> Document:
    """The answer for the only node, with what is the same said in our words."""
    (answer,) = found["answers"]
    document: Document = {"results": []} | answer
    return document | ({"error": answer["reason"]} if "reason" in answer else {})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_cases_expect_what_the_reference_answers(program: Path, file: Path) -> None:
    cases = load(file)
    wrong: dict[str, list[str]] = {}
    for case, found in zip(cases, ask(program, [case.problem for case in cases]), strict=True):
        wrong[case.name] = case.expected.differences(single(found)) + calls(case, found)
    assert {name: texts for name, texts in wrong.items() if texts} == {}


def calls(case: Case, found: Document) -> list[str]:
    differs = case.search_calls not in (None, found["searchCalls"])
    return [f"{found['searchCalls']} search calls, expected {case.search_calls}"] if differs else []


@pytest.mark.parametrize("file", VECTORS, ids=lambda file: file.stem)
def test_the_checker_accepts_every_allocation_of_the_reference(program: Path, file: Path) -> None:
    problems = [json.loads(line) for line in file.read_text().splitlines()]
    checked = 0
    for problem, found in zip(problems, ask(program, problems), strict=True):
        for answer in found["answers"]:
            if answer["outcome"] == "fit":
                checked += 1
                matches = selector_matches(problem)
                assert check(problem, answer["node"], answer["results"], matches, REFERENCE) == [], problem["name"]
    assert checked > 50
