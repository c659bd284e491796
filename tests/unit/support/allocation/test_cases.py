from pathlib import Path
from typing import Any

import pytest

from devlet.objects.documents import Document
from tests.support.allocation.cases import Case, load

TEXT = """
- case: one
  slices: [{pool: p1, devices: [d1, "d2 m:4 shared"]}]
  claims: [[r0 a, "r1 a m:1"]]
  fit: [r0 p1/d1, "r1 p1/d2 shared m:1"]
  config: [class k=v for r0]
  searchCalls: 5
  improved: {because: DA-11.01, error: never}
- case: two
  claims: [[r0 a]]
  nodeError: broken
- case: three
  claims: [[r0 a]]
  fit: [r0 p1/d0..d2]
  selector: all
"""


@pytest.fixture
def cases(tmp_path: Path) -> dict[str, Case]:
    file = tmp_path / "cases.yaml"
    file.write_text(TEXT)
    return {case.name: case for case in load(file)}


def answer(*results: Document, **more: Any) -> Document:
    selector = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    }
    config = [
        {"source": "FromClass", "requests": ["r0"], "opaque": {"driver": "a.example.com", "parameters": {"k": "v"}}}
    ]
    result = {"devices": {"results": list(results), "config": config}, "nodeSelector": selector}
    return {"outcome": "fit", "results": [result], **more}


D1 = {"request": "r0", "driver": "a.example.com", "pool": "p1", "device": "d1"}
D2 = {**D1, "request": "r1", "device": "d2", "consumedCapacity": {"m": "1"}}


def test_a_case_is_a_problem_and_its_answer(cases: dict[str, Case]) -> None:
    one = cases["one"]
    assert one.problem["name"] == "one"
    assert (one.expected.outcome, one.search_calls, one.improvement) == ("fit", 5, "DA-11.01")
    assert one.improved
    assert (one.improved.outcome, one.improved.error) == ("error", "never")


def test_a_case_without_fit_does_not_fit(cases: dict[str, Case]) -> None:
    expected = cases["two"].expected
    assert expected.differences({"outcome": "no-fit", "error": "a pool is broken"}) == []
    assert expected.differences({"outcome": "no-fit"}) == ["no-fit None, expected no-fit 'broken'"]
    assert expected.differences(answer(D1))


def test_answers_are_compared_completely_but_for_share_ids(cases: dict[str, Case]) -> None:
    expected = cases["one"].expected
    assert expected.differences(answer(D1, {**D2, "shareID": "any"})) == []
    assert expected.differences(answer(D1, D2))[0].startswith("results: ")
    other = answer(D1, {**D2, "shareID": "any"})
    del other["results"][0]["nodeSelector"], other["results"][0]["devices"]["config"]
    assert [text.split(":")[0] for text in expected.differences(other)] == ["selectors", "config"]


def test_several_devices_are_written_as_a_range(cases: dict[str, Case]) -> None:
    expected = cases["three"].expected
    assert [result["device"] for result in expected.results[0]] == ["d0", "d1", "d2"]
    assert expected.selectors == (None,)
