"""Every recorded answer of the reference: result, text of errors, estimated and actual cost."""

import json
from pathlib import Path
from typing import Any

import pytest

from devlet.alloc.cases import answer_case, read_case

VECTORS = Path(__file__).parents[2] / "vectors" / "cel_selectors.json"
FOUND = Path(__file__).parents[4] / "shared" / "spec" / "vectors" / "cel_selectors_found.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text())
if FOUND.is_file():
    CASES += json.loads(FOUND.read_text())
SLOW = {"up-expensive"}  # goes up to the limit on cost
COSTS = ("estimatedCost", "exceedsEstimateLimit", "actualCost")


@pytest.mark.spec("DA-4.1")
@pytest.mark.spec("DA-4.2")
@pytest.mark.spec("DA-4.3")
@pytest.mark.spec("DA-4.4")
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case["id"], marks=[pytest.mark.long] * (case["id"] in SLOW)) for case in CASES],
)
def test_the_answer_is_the_references(case: dict[str, Any]) -> None:
    answer = answer_case(read_case(case))
    assert answer["result"] == case["expected"]
    assert ("error" in answer) == ("error" in case)
    assert case.get("error", "") in answer.get("error", "")
    assert {key: answer[key] for key in COSTS if key in case} == {key: case[key] for key in COSTS if key in case}
    assert ("estimatedCost" in answer) == (case["expected"] != "compile-error")


def test_all_vectors_are_there() -> None:
    assert len(json.loads(VECTORS.read_text())) == 178
