"""Environments of Kubernetes releases, compared with what the reference says about the same expressions in each."""

import json
import re
from pathlib import Path

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import BINDINGS, Environment, ObjectField, kubernetes
from devlet.cel.functions import Function, Library, Overload, Range
from devlet.cel.issues import CompileError
from devlet.cel.parser import parse
from devlet.cel.types import BOOL, DURATION, DYN, INT, STRING, list_of, map_of, object_type, opaque, type_of

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/cel_checker.json").read_text(encoding="utf-8"))
RELEASES = VECTORS["releases"]
"""Expressions whose answer depends on the release: `from` a minor version on, as text or `OK <type>`."""


def answer(expression: str, environment: Environment) -> str:
    try:
        return f"OK {check(parse(expression, environment.macros), environment).output}"
    except CompileError as e:
        return str(e)


def numbered_alike(text: str) -> str:
    """The reference numbers the type variables of a function in random order."""
    return re.sub(r"_var\d+", "_var", text)


@pytest.mark.spec("DA-4.2t")
@pytest.mark.parametrize("minor", [23, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36])
def test_a_release_accepts_and_refuses_what_the_reference_does(minor: int) -> None:
    environment = kubernetes((1, minor), stored=False)
    wrong = []
    for row in RELEASES:
        expected = [a["answer"] for a in row["answers"] if a["from"] <= minor][-1]
        found = answer(row["expression"], environment)
        if numbered_alike(found) != numbered_alike(expected):
            wrong.append((row["expression"], expected, found))
    assert wrong == []


@pytest.mark.spec("DA-4.2u")
def test_stored_expressions_may_use_everything_in_any_release() -> None:
    old, new = kubernetes((1, 23), stored=True), kubernetes((1, 36), stored=False)
    for row in RELEASES:
        assert answer(row["expression"], old) == answer(row["expression"], new)


@pytest.mark.parametrize(
    ("expression", "since"),
    [
        ("1 < 1.5", 28),
        ("optional.of(1).hasValue()", 28),
        ("isQuantity('1')", 28),
        ("sets.contains([1], [1])", 29),
        ("'%d'.format([1]) == '1'", 29),
        ("isIP('::1')", 30),
        ("isCIDR('::1/64')", 30),
        ("format.uuid().validate('x').hasValue()", 31),
        ("[1].all(i, x, x > i)", 32),
        ("isSemver('1.0.0')", 33),
        ("[1].distinct() == [1]", 34),
    ],
)
def test_each_library_came_with_a_release(expression: str, since: int) -> None:
    assert answer(expression, kubernetes((1, since), stored=False)) == "OK bool"
    assert answer(expression, kubernetes((1, since - 1), stored=False)).startswith("ERROR")


def test_before_1_29_bad_literals_are_found_at_run_time_only() -> None:
    assert answer("duration('x') > duration('y')", kubernetes((1, 28), stored=False)) == "OK bool"
    assert "invalid duration argument" in answer("duration('x') > duration('y')", kubernetes((1, 29), stored=False))


def test_before_1_28_the_reference_forgets_in_a_comprehension_that_numbers_do_not_mix() -> None:
    old = kubernetes((1, 27), stored=False)
    assert answer("1 < 1.5", old).startswith("ERROR")
    assert answer("[1].all(x, x < 1.5)", old) == "OK bool"
    assert answer("[1].all(x, true) && 1 < 1.5", old) == "OK bool"
    assert answer("1 < 1.5 && [1].all(x, true)", old).startswith("ERROR")


def test_an_environment_is_made_once() -> None:
    assert kubernetes((1, 36), stored=True) is kubernetes((1, 36), stored=True)


def _nothing(*args: object) -> None:
    return None


def _library(name: str, *overloads: Overload) -> Library:
    return Library(name, (Function("f", overloads),))


def test_overloads_of_a_function_add_up_in_order() -> None:
    first = _library("one", Overload("f_int", (INT,), INT, _nothing))
    second = _library("two", Overload("f_string", (STRING,), INT, _nothing), Overload("f_int", (INT,), INT, _nothing))
    environment = Environment().extended(libraries=[first]).extended(libraries=[second])
    assert [o.id for o in environment.functions["f"].overloads] == ["f_int", "f_string"]


def test_extending_leaves_the_original_alone() -> None:
    base = kubernetes((1, 36), stored=True)
    extended = base.extended(
        variables={"x": INT}, libraries=[BINDINGS], sizes=lambda path: Range(0, len(path)) if path else None
    )
    assert extended.sizes(("x", "y")) == Range(0, 2)
    assert base.sizes(("x", "y")) is None
    assert "cel.bind" in extended.macros - base.macros
    assert "x" not in base.names


HOST = Environment().extended(
    variables={"thing": object_type("Thing"), "duration": INT},
    objects={"Thing": {"a": ObjectField(STRING, "a"), "m": ObjectField(map_of(STRING, BOOL), "m")}},
)


def test_a_variable_hides_a_type() -> None:
    assert HOST.names["duration"].type == INT
    assert HOST.extended(objects={}).names["timestamp"].type.params[0].type_name == "google.protobuf.Timestamp"


def test_types_of_the_host_are_names_without_a_value() -> None:
    assert HOST.names["Thing"].type == type_of(object_type("Thing"))
    assert HOST.names["Thing"].value is None
    assert HOST.names["Thing.m"].type == type_of(map_of(STRING, BOOL))
    assert "Thing.a" not in HOST.names


def test_types_of_the_language_are_names_with_a_value() -> None:
    assert HOST.names["int"].value == INT
    assert HOST.names["google.protobuf.Duration"].value == DURATION
    assert "duration" not in Environment().names


def test_types_of_a_library_are_names() -> None:
    environment = Environment().extended(libraries=[Library("x", (), types=(opaque("net.X"),))])
    assert environment.names["net.X"].value == opaque("net.X")


def test_fields_are_known_by_type() -> None:
    assert HOST.field_type("Thing", "a") == STRING
    assert HOST.field_type("Thing", "b") is None
    assert HOST.field_type("Thing.m", "whatever") == BOOL
    assert HOST.has_fields("Thing")
    assert HOST.has_fields("int")
    assert not HOST.has_fields("kubernetes.Quantity")
    assert not Environment().has_fields("int")
    assert Environment().field_type("google.protobuf.ListValue", "values") == list_of(DYN)


def test_the_longest_name_counts_its_parts() -> None:
    assert HOST.longest_name == 4
    assert HOST.extended(variables={"a.b.c.d.e": INT}).longest_name == 5
