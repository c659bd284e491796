"""Hundreds of expressions with the answers of the reference: result, text of the error, estimated and actual cost."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.cel.functions import UNBOUNDED
from devlet.cel.program import compile
from devlet.errors import InvalidSelector
from devlet.objects.types.slice import Device

VECTORS = Path(__file__).parents[3] / "vectors" / "cel_libraries.json"
LIBRARIES = "lists sets kube_lists includes two_variables quantity semver addresses url named_formats".split()


@cache
def _vectors() -> dict[str, Any]:
    vectors: dict[str, Any] = json.loads(VECTORS.read_text())
    return vectors


def _answer(expression: str, device: DeviceInput) -> dict[str, Any]:
    try:
        program = compile(expression, device_environment())
    except InvalidSelector as e:
        return {"result": "compile-error", "error": str(e)}
    evaluation = program.evaluate({"device": device})
    most = program.cost.max
    costs = {"estimatedCost": most if most < UNBOUNDED else "unbounded", "actualCost": evaluation.cost}
    if evaluation.error:
        return {"result": "runtime-error", "error": evaluation.error.message, **costs}
    return {"result": evaluation.value, **costs}


@pytest.mark.spec("DA-4.3n")
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_expression_has_the_answer_and_the_costs_of_the_reference(library: str) -> None:
    raw = {"name": "d", **_vectors()["device"]}
    device = DeviceInput(raw.pop("driver"), msgspec.convert(raw, Device))
    cases = [case for case in _vectors()["cases"] if case["library"] == library]
    assert len(cases) >= 60
    for case in cases:
        expected = {key: case[key] for key in ("result", "error", "estimatedCost", "actualCost") if key in case}
        assert _answer(case["expression"], device) == expected, case["expression"]
