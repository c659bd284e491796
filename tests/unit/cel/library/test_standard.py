import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.cel.functions import UNBOUNDED, Overload, Range, SizedNode
from devlet.cel.library.standard import LIBRARY
from devlet.cel.program import compile
from devlet.cel.types import STRING, Type, object_type, opaque
from devlet.cel.values import CelError, Optional
from devlet.errors import InvalidSelector
from devlet.objects.types.slice import Device
from devlet.objects.values.quantity import Quantity

VECTORS = Path(__file__).parents[3] / "vectors" / "cel_functions.jsonl"
FUNCTIONS = {function.name: function for function in LIBRARY.functions}
OVERLOADS = {overload.id: overload for function in LIBRARY.functions for overload in function.overloads}
PARTS = 8
DEVICE = {
    "name": "d",
    "attributes": {
        "s": {"string": "abc"},
        "i": {"int": 5},
        "b": {"bool": True},
        "v": {"version": "1.2.3"},
        "l": {"strings": ["a", "bb"]},
        "e": {"string": ""},
    },
    "capacity": {"mem": {"value": "4Gi"}},
}


@cache
def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in VECTORS.read_text().splitlines()]


def answer(expression: str) -> dict[str, Any]:
    try:
        program = compile(expression, device_environment())
    except InvalidSelector as e:
        return {"result": "compile-error", "error": str(e)}
    evaluation = program.evaluate({"device": DeviceInput("dra.example.com", msgspec.convert(DEVICE, Device))})
    costs = {"estimatedCost": program.cost.max, "actualCost": evaluation.cost}
    if evaluation.error:
        return {"result": "runtime-error", "error": evaluation.error.message, **costs}
    return {"result": evaluation.value, **costs}


@pytest.mark.spec("DA-4.3s")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_expression_has_the_answer_and_the_costs_of_the_reference(part: int) -> None:
    assert len(cases()) > 800
    for case in cases()[part::PARTS]:
        given = answer(case["expression"])
        assert {
            "expression": case["expression"],
            **{key: given.get(key) for key in case if key != "expression"},
        } == case


def cost(id: str, *args: Any) -> int | None:
    actual = OVERLOADS[id].cost
    assert actual
    return actual(args, None)


def estimate(overload: Overload, *sizes: Range | None, types: tuple[Type, Type] = (STRING, STRING)) -> Range:
    nodes = [SizedNode(type, (), size) for type, size in zip(types, sizes, strict=True)]
    assert overload.estimate
    result = overload.estimate(nodes[0], nodes[1:]) if overload.is_member else overload.estimate(None, nodes)
    assert result
    return result.cost


def test_overloads_have_the_names_that_the_reference_gives_them() -> None:
    assert [overload.id for overload in FUNCTIONS["_+_"].overloads] == [
        "add_bytes",
        "add_double",
        "add_duration_duration",
        "add_duration_timestamp",
        "add_timestamp_duration",
        "add_int64",
        "add_list",
        "add_string",
        "add_uint64",
    ]
    assert [overload.id for overload in FUNCTIONS["-_"].overloads] == ["negate_double", "negate_int64"]
    assert {"less_int64_double", "greater_equals_uint64_int64", "less_equals_bool"} <= OVERLOADS.keys()
    assert {"subtract_timestamp_timestamp", "modulo_uint64", "size_map", "string_size"} <= OVERLOADS.keys()
    assert len(FUNCTIONS["_<_"].overloads) == 14


def test_operators_are_called_whatever_the_types_are() -> None:
    for name in ("_==_", "_!=_", "_<_", "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "!_", "@in", "_[_]", "size"):
        assert FUNCTIONS[name].dispatch, name


def test_operators_that_do_not_need_all_arguments_cannot_be_called() -> None:
    for name in ("_&&_", "_||_", "_?_:_"):
        with pytest.raises(CelError, match="no such overload"):
            FUNCTIONS[name].overloads[0].call(True, True)


def test_only_false_is_strictly_false() -> None:
    call = OVERLOADS["not_strictly_false"].call
    assert (call(False), call(True), call("x")) == (False, True, True)


def test_comparing_costs_by_the_smaller_one() -> None:
    assert cost("less_string", "a" * 11, "b" * 100) == 2
    assert cost("equals", "a" * 11, Optional("b" * 21)) == 2
    assert cost("not_equals", "", "b") == 0
    assert estimate(OVERLOADS["equals"], Range(0, 30), Range(5, 100)) == Range(1, 3)
    assert estimate(OVERLOADS["equals"], Range(0, 0), None) == Range(0, 0)


@pytest.mark.parametrize(
    ("type", "most"),
    [
        (object_type("kubernetes.Quantity"), 1),
        (object_type("kubernetes.Semver"), 1),
        (opaque("net.IP"), 1),
        (object_type("kubernetes.NamedFormat"), 7),
        (object_type("kubernetes.URL"), 1),
    ],
)
def test_comparing_values_of_libraries_has_a_fixed_cost(type: Type, most: int) -> None:
    assert estimate(OVERLOADS["equals"], None, None, types=(type, type)) == Range(1, most)
    assert estimate(OVERLOADS["not_equals"], None, None, types=(type, type)).max > UNBOUNDED // 11


def test_a_url_is_compared_by_its_length() -> None:
    url = object_type("kubernetes.URL")
    assert estimate(OVERLOADS["equals"], None, Range(1, 50), types=(url, url)) == Range(1, 5)


def test_a_quantity_costs_one_even_beside_something_empty() -> None:
    assert cost("equals", Quantity.parse("1"), "") == 1


def test_concatenation_costs_by_the_length_of_the_result() -> None:
    assert cost("add_string", "a" * 5, "b" * 6) == 2
    assert estimate(OVERLOADS["add_string"], Range(0, 10), Range(1, 10)) == Range(1, 2)
    assert estimate(OVERLOADS["add_list"], Range(0, 10), Range(1, 10)) == Range(1, 1)
    assert OVERLOADS["add_list"].cost is None


def test_in_costs_by_the_elements_of_the_list() -> None:
    assert cost("in_list", 1, [1, 2, 3]) == 3
    assert estimate(OVERLOADS["in_list"], None, Range(0, 7)) == Range(0, 7)
    assert OVERLOADS["in_map"].cost is None


def test_a_prefix_is_estimated_by_its_length_but_costs_by_that_of_the_text() -> None:
    assert cost("starts_with_string", "a" * 31, "a") == 4
    assert estimate(OVERLOADS["ends_with_string"], Range(0, 500), Range(0, 10)) == Range(0, 1)


def test_a_part_costs_both_lengths() -> None:
    assert cost("contains_string", "a" * 31, "a" * 11) == 4 * 2
    assert estimate(OVERLOADS["contains_string"], Range(0, 100), Range(20, 20)) == Range(0, 20)


def test_tests_of_text_want_text() -> None:
    for args in ((1, "a"), ("a", 1)):
        with pytest.raises(CelError) as caught:
            OVERLOADS["contains_string"].call(*args)
        assert caught.value.message == "no such overload"
