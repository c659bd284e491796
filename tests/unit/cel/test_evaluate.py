import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import BINDINGS, Environment, ObjectField, kubernetes
from devlet.cel.evaluate import Evaluation, evaluate
from devlet.cel.library import includes
from devlet.cel.parser import parse
from devlet.cel.plan import Plan, plan
from devlet.cel.types import ANY, BOOL, DYN, QUANTITY, STRING, Type, map_of, object_type
from devlet.cel.values import CostExceeded
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.semver import parse as version

Run = Callable[..., Evaluation]


# Limits


BOMB = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0)) || true"


@pytest.mark.spec("DA-4.4c")
def test_a_limit_on_cost_ends_the_evaluation_and_nothing_absorbs_that(run: Run) -> None:
    evaluation = run(BOMB, cost_limit=10_000)
    assert str(evaluation.error) == "operation cancelled: actual cost limit exceeded"
    assert isinstance(evaluation.error, CostExceeded)
    assert evaluation.cost > 10_000


@pytest.mark.long
@pytest.mark.spec("DA-4.4c")
def test_the_usual_limit_on_cost_is_a_million(run: Run) -> None:
    evaluation = run(BOMB)
    assert str(evaluation.error) == "operation cancelled: actual cost limit exceeded"
    assert isinstance(evaluation.error, CostExceeded)
    assert evaluation.cost == 1_000_001


def test_a_cost_equal_to_the_limit_is_allowed(run: Run) -> None:
    text = "device.driver == 'dra.example.com'"
    assert run(text, cost_limit=4).value is True
    assert isinstance(run(text, cost_limit=3).error, CostExceeded)


@pytest.mark.spec("DA-4.4d")
def test_give_up_is_called_every_hundred_steps(run: Run) -> None:
    asked: list[int] = []

    def give_up() -> bool:
        asked.append(1)
        return len(asked) == 3

    evaluation = run("lists.range(1000).all(x, x >= 0) || true", give_up=give_up)
    assert str(evaluation.error) == "operation interrupted"
    assert len(asked) == 3
    assert run("lists.range(99).all(x, x >= 0)", give_up=lambda: True).value is True


# Trace


def traced(evaluation: Evaluation, planned: Plan) -> dict[str, Any]:
    source = planned.checked.parsed.source
    return {source.snippet(id): value for id, value in evaluation.trace.items() if source.snippet(id)}


def test_a_trace_has_the_value_of_every_part_that_was_reached(run: Run, planned: Callable[[str], Plan]) -> None:
    text = "device.driver == 'x' || (D.count > 4 ? 1 + 1 : 2) in [2, 3]"
    values = traced(run(text, trace=True), planned(text))
    assert values["device.driver"] == "dra.example.com"
    assert values["device.driver == 'x'"] is False
    assert values['device.attributes["dra.example.com"].count'] == 8
    assert values["1 + 1"] == 2
    assert "2" not in values


def test_a_trace_has_errors_and_what_was_computed_in_advance(run: Run, planned: Callable[[str], Plan]) -> None:
    text = "D.nope == 1 || [1, int('7')] == [D.count]"
    values = traced(run(text, trace=True), planned(text))
    assert str(values['device.attributes["dra.example.com"].nope']) == "no such key: nope"
    assert values["int('7')"] == 7
    assert values["[1, int('7')]"] == [1, 7]


def test_in_a_comprehension_the_last_value_is_traced(run: Run, planned: Callable[[str], Plan]) -> None:
    text = "[1, 2, 3].all(x, x * 2 < 5)"
    values = traced(run(text, trace=True), planned(text))
    assert values["x * 2"] == 6
    assert values["x * 2 < 5"] is False


def test_without_being_asked_there_is_no_trace(run: Run) -> None:
    assert run("true").trace == {}


# Depth


@pytest.mark.parametrize(
    "text",
    [
        "1" + " + 1" * 248 + " > 0",
        "[1].all(x, " * 249 + "true" + ")" * 249,
        "false ? true : " * 248 + "true",
        "optional.of(1).optFlatMap(x, " * 248 + "optional.of(x)" + ")" * 248 + ".hasValue()",
        "cel.bind(x, true, " * 249 + "x" + ")" * 249,
        "dyn([0])[" * 120 + "size(device.driver) - 15" + "]" * 120 + " == 0",
        "[dyn(" * 120 + "size(device.driver)" + ")]" * 120 + " != []",
    ],
)
def test_expressions_may_be_as_deep_as_the_parser_lets_them(run: Run, text: str) -> None:
    assert run(text).value is True


# The recorded answers of the reference

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "cel_selectors.json").read_text())
EVALUATED = [
    vector
    for vector in VECTORS
    if vector["expected"] != "compile-error" and not vector.get("error", "").startswith("attribute ")
]


class Domains(dict[str, dict[str, Any]]):
    def __missing__(self, _: str) -> dict[str, Any]:
        return {}


class Device:
    def __init__(self, recorded: dict[str, Any]) -> None:
        self.driver = recorded["driver"]
        self.shared = recorded.get("allowMultipleAllocations", False)
        self.attributes = Domains()
        self.capacity = Domains()
        for name, attribute in recorded["attributes"].items():
            self._put(self.attributes, name, _value(attribute))
        for name, capacity in recorded["capacity"].items():
            self._put(self.capacity, name, Quantity.parse(capacity["value"]))

    def _put(self, domains: Domains, name: str, value: Any) -> None:
        domain, slash, id = name.rpartition("/")
        domains.setdefault(domain if slash else self.driver, {})[id] = value


def _value(attribute: dict[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    if kind == "version":
        return version(value)
    return [version(text) for text in value] if kind == "versions" else value


def _environment(vector: dict[str, Any]) -> Environment:
    stored = vector["env"] == "stored"
    attribute: Type = DYN if vector["features"]["listTypeAttributes"] else ANY
    return kubernetes((1, 35), stored=stored).extended(
        variables={"device": object_type("kubernetes.DRADevice")},
        objects={
            "kubernetes.DRADevice": {
                "driver": ObjectField(STRING, "driver"),
                "attributes": ObjectField(map_of(STRING, map_of(STRING, attribute)), "attributes"),
                "capacity": ObjectField(map_of(STRING, map_of(STRING, QUANTITY)), "capacity"),
                "allowMultipleAllocations": ObjectField(BOOL, "shared"),
            }
        },
        libraries=[BINDINGS, includes.LIBRARY],
    )


@pytest.mark.spec("DA-4.4e")
@pytest.mark.parametrize("vector", EVALUATED, ids=[vector["id"] for vector in EVALUATED])
def test_recorded_selectors_give_the_answer_and_the_cost_of_the_reference(vector: dict[str, Any]) -> None:
    environment = _environment(vector)
    planned = plan(check(parse(vector["expression"], environment.macros), environment))
    evaluation = evaluate(planned, {"device": Device(vector["device"])})
    if vector["expected"] != "runtime-error":
        assert evaluation.value is vector["expected"]
    elif evaluation.error:
        assert evaluation.error.message in vector["error"]
    else:
        assert "could not be converted to bool" in vector["error"]
    assert evaluation.cost == vector.get("actualCost", evaluation.cost)
