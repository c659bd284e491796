"""Recorded answers of the reference, and the format they are recorded in."""

import json
from pathlib import Path
from typing import Any

import pytest

from devlet.alloc import Limits, Rules
from devlet.alloc.problems import answer_problem, read_problem, solve_problem
from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from tests.support.allocation.shorthand import problem

VECTORS = Path(__file__).parents[2] / "vectors"
RECORDED = ("allocator_problems.jsonl", "allocator_problems_lists.jsonl")


def recorded(name: str) -> list[Document]:
    return [json.loads(line) for line in (VECTORS / name).read_text().splitlines()]


def comparable(answer: Document) -> Document:
    """Why a node is refused is not recorded."""
    kept = {"node", "outcome", "allocations"} | ({"error"} if answer["outcome"] == "error" else set())
    return {key: value for key, value in answer.items() if key in kept}


@pytest.mark.spec("DA-3.5b")
@pytest.mark.parametrize("name", RECORDED)
def test_every_answer_is_the_reference_s_down_to_the_device_and_the_text(name: str) -> None:
    documents = recorded(name)
    assert len(documents) >= 200
    for document in documents:
        assert list(map(comparable, solve_problem(document))) == document["expected"], document["name"]


ONE = problem({"case": "one", "slices": [{"pool": "p1", "devices": ["d1", "d2"]}], "claims": [["r0 a"]]})


def test_an_answer_names_the_devices_of_each_claim() -> None:
    (answer,) = solve_problem(ONE)
    device = {"request": "r0", "driver": "a.example.com", "pool": "p1", "device": "d1"}
    assert (answer["node"], answer["outcome"], answer["allocations"]) == ("node-1", "fit", [[device]])
    assert answer["results"][0]["devices"]["results"] == [device]


def test_only_the_presence_of_a_random_share_id_is_recorded() -> None:
    slices = [{"pool": "p1", "devices": ["d1 lanes:4 shared"]}]
    (answer,) = solve_problem(problem({"case": "share", "slices": slices, "claims": [["r0 a lanes:1"]]}))
    (device,) = answer["allocations"][0]
    assert (device["shared"], device["consumedCapacity"]) == (True, {"lanes": "1"})


def test_no_fit_gives_a_reason_if_one_is_known() -> None:
    slices = [{"pool": "p1", "devices": ["d1", "d1"]}]
    (answer,) = solve_problem(problem({"case": "invalid", "slices": slices, "claims": [["r0 a"]]}))
    assert answer == {"node": "node-1", "outcome": "no-fit", "error": "invalid resource pools were encountered"}
    (answer,) = solve_problem(problem({"case": "none", "claims": [["r0 a"]]}))
    assert answer == {"node": "node-1", "outcome": "no-fit"}


def test_an_error_is_an_answer() -> None:
    (answer,) = solve_problem(problem({"case": "lost", "claims": [["r0 c"]]}))
    assert answer["outcome"] == "error"
    assert 'deviceclass.resource.k8s.io "c" not found' in answer["error"]


@pytest.mark.parametrize("features", [{"PrioritizedList": False}, ["-PrioritizedList"], ["AdminAccess"]])
def test_features_may_be_given_by_name(features: Any) -> None:
    assert read_problem(ONE | {"features": features}).features.prioritized_list is False


def test_a_search_that_was_given_up_says_so() -> None:
    (answer,) = solve_problem(ONE, limits=lambda: Limits(steps=0))
    assert answer["error"] == "the search was given up after 1 steps"
    (answer,) = answer_problem(read_problem(ONE), Rules(), lambda: Limits(steps=0))
    assert answer["outcome"] == "no-fit"


def changed(**parts: Any) -> Document:
    return ONE | parts


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ([], "a problem must be an object with nodes"),
        (None, "a problem must be an object with nodes"),
        (changed(slices=[{"spec": 3}]), r"problem 'one': slices\[0\]: Expected `object`, got `int`"),
        (changed(slices=3), "problem 'one': slices must be a list, not 3"),
        (changed(claims=[{"spec": {"devices": {"requests": [{"exactly": {"count": "x"}}]}}}]), r"'one': claims\[0\]"),
        (changed(nodes=["n0"]), r"problem 'one': nodes\[0\]: Expected `object`, got `str`"),
        (changed(features={"Magic": True}), "problem 'one': unknown allocator feature 'Magic'"),
        (changed(features=[3]), "problem 'one': "),
        (
            changed(
                slices=[
                    {"metadata": {"name": "s"}, "spec": {"devices": [{"name": "d", "capacity": {"c": {"value": "x"}}}]}}
                ]
            ),
            "problem 'one': slice s, device d, capacity c: 'x' is not a quantity",
        ),
    ],
)
def test_an_invalid_problem_is_rejected_by_name(document: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        read_problem(document)


def test_claims_of_one_name_are_all_held() -> None:
    document = problem(
        {
            "case": "two",
            "slices": [{"pool": "p1", "devices": ["d1", "d2"]}],
            "allocated": ["p1/d1", "p1/d2"],
            "claims": [["r0 a"]],
        }
    )
    for claim in document["allocated"]:
        claim["metadata"]["name"] = "same"
    assert [answer["outcome"] for answer in solve_problem(document)] == ["no-fit"]


def test_two_slices_of_one_name_are_refused() -> None:
    document = json.loads(json.dumps(ONE))
    document["slices"].append(document["slices"][0])
    with pytest.raises(
        InvalidInput, match="problem 'one': slices: 2 of them are named 'slice-1'; names must be unique"
    ):
        read_problem(document)


def test_null_is_the_same_as_an_absent_field() -> None:
    document = json.loads(json.dumps(ONE))
    document["slices"][0]["spec"]["devices"][0] |= {"taints": None, "capacity": None, "attributes": None}
    document["nodes"][0]["metadata"]["labels"] = None
    assert [answer["outcome"] for answer in solve_problem(document)] == ["fit"]
