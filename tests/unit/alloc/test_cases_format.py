"""Cases of selectors as documents; tests/unit/alloc/test_cel_vectors.py has their answers."""

from typing import Any

import pytest

from devlet.alloc.cases import answer_case, read_case
from devlet.errors import InvalidInput

DEVICE = {"driver": "gpu.example.com", "attributes": {"model": {"string": "a100"}, "tags": {"strings": ["a"]}}}


def case(expression: str = "true", **more: Any) -> dict[str, Any]:
    return {"id": "c", "expression": expression, "device": DEVICE, "features": {"listTypeAttributes": True}, **more}


def test_an_answer_has_result_and_costs() -> None:
    expression = 'device.attributes["gpu.example.com"].model == "a100"'
    assert answer_case(read_case(case(expression))) == {
        "id": "c",
        "result": True,
        "estimatedCost": 5,
        "exceedsEstimateLimit": False,
        "actualCost": 5,
    }


def test_what_does_not_compile_has_no_costs() -> None:
    answer = answer_case(read_case(case("device.lost")))
    assert answer.keys() == {"id", "result", "error"}
    assert answer["result"] == "compile-error"
    assert answer["error"].startswith("compilation failed: ERROR: <input>:1:7: undefined field 'lost'")


def test_an_unlimited_estimate_is_unbounded() -> None:
    answer = answer_case(read_case(case('device.attributes["gpu.example.com"].model.split(",").isSorted()')))
    assert answer["estimatedCost"] == "unbounded"
    assert answer["exceedsEstimateLimit"] is True


def test_features_are_off_and_expressions_stored_unless_the_case_says_otherwise() -> None:
    assert answer_case(read_case(case(features=None)))["error"] == "attribute tags: unsupported attribute value"
    multiple = "device.allowMultipleAllocations"
    assert answer_case(read_case(case(multiple)))["result"] is False
    assert answer_case(read_case(case(multiple, env="new")))["result"] == "compile-error"


def test_an_evaluation_that_is_given_up_is_a_run_time_error() -> None:
    slow = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
    answer = answer_case(read_case(case(slow)), lambda: True)
    assert (answer["result"], answer["error"]) == ("runtime-error", "operation interrupted")


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (5, "case #3: expected an object with id, expression and device"),
        ({"device": DEVICE}, "case #3: expression is missing"),
        (case() | {"expression": 7}, "case 'c': expression is 7: expected a text"),
        (case(device=[]), "case 'c': device is []: expected a JSON object"),
        (case(device={"driver": 1}), "case 'c': device: case 'c': driver is 1: expected a text"),
        (case(device={"attributes": {"a": {"int": "x"}}}), "case 'c': device: "),
        (case(features=[]), "case 'c': features is []: expected a JSON object"),
        (case(features={"listTypeAttributes": 1}), "case 'c': features: listTypeAttributes is 1: expected a bool"),
        (case(env="old"), "case 'c': env is 'old': expected 'new' or 'stored'"),
        (case(id=5), "case 5: id is 5: expected a text"),
    ],
)
def test_an_invalid_case_is_an_error_that_names_it(document: Any, error: str) -> None:
    with pytest.raises(InvalidInput) as e:
        read_case(document, 3)
    assert str(e.value).startswith(error)
