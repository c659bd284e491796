"""Test cases for selectors: an expression, a device and the enabled features, with the reference's answer.

The format is the one in which the reference's answers are recorded. An answer omits fields that have no value: an
expression that does not compile has no cost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.alloc.selectors import compile_selector
from devlet.cel.functions import UNBOUNDED
from devlet.cel.program import COST_LIMIT, Program, as_bool
from devlet.cel.values import CelError
from devlet.errors import InvalidInput, InvalidSelector
from devlet.objects.documents import Document
from devlet.objects.types.slice import Device

__all__ = ["Case", "answer_case", "read_case"]

NEW, STORED = "new", "stored"


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `stored` says that the expression was accepted earlier, so gates do not apply. `shares` and `lists` are
    those gates."""

    id: str
    expression: str
    device: DeviceInput
    stored: bool = True
    shares: bool = False
    lists: bool = False


def read_case(document: Any, index: int = 0) -> Case:
    """Parse a case. Raises InvalidInput that names the case by its id, or by its index if it has none."""
    if not isinstance(document, dict):
        raise InvalidInput(f"case #{index}: expected an object with id, expression and device")
    name = f"case {document['id']!r}" if document.get("id") else f"case #{index}"
    features = _member(document, "features", dict, name, {})
    env = _member(document, "env", str, name, STORED)
    if env not in (NEW, STORED):
        raise InvalidInput(f"{name}: env is {env!r}: expected {NEW!r} or {STORED!r}")
    return Case(
        _member(document, "id", str, name, ""),
        _member(document, "expression", str, name),
        read_device(_member(document, "device", dict, name, {}), name),
        stored=env == STORED,
        shares=_member(features, "consumableCapacity", bool, f"{name}: features", False),
        lists=_member(features, "listTypeAttributes", bool, f"{name}: features", False),
    )


def read_device(document: Document, name: str) -> DeviceInput:
    """Parse a device with its driver. Raises InvalidInput whose text begins with the name."""
    try:
        return DeviceInput(_member(document, "driver", str, name, ""), msgspec.convert(document, Device))
    except (msgspec.ValidationError, InvalidInput) as e:
        raise InvalidInput(f"{name}: device: {e}") from e


def _member(document: Document, key: str, type_: type[Any], name: str, default: Any = None) -> Any:
    value = document.get(key)
    if value is None:
        value = default
    if not isinstance(value, type_):
        problem = "is missing" if value is None else f"is {value!r:.80}: expected a {_WORDS[type_]}"
        raise InvalidInput(f"{name}: {key} {problem}")
    return value


_WORDS = {str: "text", dict: "JSON object", bool: "bool"}


def answer_case(case: Case, give_up: Callable[[], bool] | None = None) -> Document:
    """Return the result and, if the expression compiles, its costs. An evaluation that is given up counts as a run-time
    error."""
    environment = device_environment(stored=case.stored, shares=case.shares, lists=case.lists)
    try:
        program = compile_selector(case.expression, environment, lists=case.lists)
    except InvalidSelector as e:
        return {"id": case.id, "result": "compile-error", "error": str(e)}
    result, cost = evaluated(program, case.device, lists=case.lists, give_up=give_up)
    failed = isinstance(result, CelError)
    answer: Document = {"id": case.id, "result": "runtime-error" if failed else result}
    most = program.cost.max
    return (
        answer
        | ({"error": str(result)} if failed else {})
        | {"estimatedCost": "unbounded" if most >= UNBOUNDED else most, "exceedsEstimateLimit": most > COST_LIMIT}
        | {"actualCost": cost}
    )


def evaluated(
    program: Program, device: DeviceInput, *, lists: bool = True, give_up: Callable[[], bool] | None = None
) -> tuple[bool | CelError, int]:
    """Return the result and the actual cost. A device that cannot be converted to CEL costs nothing."""
    if problem := device.problem_with(lists):
        return problem, 0
    evaluation = program.evaluate({"device": device}, give_up=give_up)
    result = evaluation.error or evaluation.value
    return as_bool(result), evaluation.cost
