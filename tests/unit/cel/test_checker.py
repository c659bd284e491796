"""The checker, compared with the reference on some eight hundred right and wrong expressions, and on its own."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.ast import Call, Expr, Ident, Literal, Parsed, Select, Source
from devlet.cel.checker import Checked, Reference, check
from devlet.cel.environment import BINDINGS, Environment, ObjectField, kubernetes
from devlet.cel.issues import CompileError
from devlet.cel.library import includes
from devlet.cel.parser import parse
from devlet.cel.types import (
    ANY,
    BOOL,
    DYN,
    INT,
    QUANTITY,
    STRING,
    Type,
    list_of,
    map_of,
    object_type,
    optional_of,
    type_of,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/cel_checker.json").read_text(encoding="utf-8"))


def device_environment(leaf: Type) -> Environment:
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, leaf)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
        "allowMultipleAllocations": BOOL,
    }
    return kubernetes((1, 36), stored=True).extended(
        variables={"device": object_type("kubernetes.DRADevice")},
        objects={"kubernetes.DRADevice": {name: ObjectField(t, name) for name, t in fields.items()}},
        libraries=[BINDINGS, includes.LIBRARY],
    )


DEVICE = device_environment(ANY)
DEVICE_WITH_LISTS = device_environment(DYN)


def checked(expression: str, environment: Environment = DEVICE) -> Checked:
    return check(parse(expression, environment.macros), environment)


def problem(expression: str, environment: Environment) -> str | None:
    """As a selector of devices is refused: with issues, or for what it evaluates to."""
    try:
        output = checked(expression, environment).output
    except CompileError as e:
        return str(e)
    allowed = {BOOL, ANY, DYN} if environment is DEVICE_WITH_LISTS else {BOOL, ANY}
    if output in allowed and not output.nullable:
        return None
    return f"must evaluate to bool or the unknown type, not {output}"


def numbered_alike(text: str | None) -> str | None:
    """The reference numbers the type variables of a function in random order."""
    return text and re.sub(r"_var\d+", "_var", text)


def disagreements(environment: Environment, key: str) -> list[tuple[str, str | None, str | None]]:
    found = []
    for row in VECTORS["device"]:
        expected = row.get(key, row["error"])
        got = problem(row["expression"], environment)
        if numbered_alike(got) != numbered_alike(expected):
            found.append((row["expression"], expected, got))
    return found


@pytest.mark.spec("DA-4.1t")
def test_issues_are_those_of_the_reference_word_for_word() -> None:
    assert disagreements(DEVICE, "error") == []


@pytest.mark.spec("DA-4.1u")
def test_with_lists_issues_are_those_of_the_reference_too() -> None:
    assert disagreements(DEVICE_WITH_LISTS, "errorWithLists") == []


@pytest.mark.spec("DA-4.4t")
def test_output_types_are_written_as_the_reference_does() -> None:
    base = kubernetes((1, 36), stored=True)
    rows = VECTORS["outputs"]
    assert [str(checked(row["expression"], base).output) for row in rows] == [row["output"] for row in rows]


def messages(expression: str, environment: Environment = DEVICE) -> list[str]:
    with pytest.raises(CompileError) as caught:
        checked(expression, environment)
    return [issue.message for issue in caught.value.issues]


def test_all_issues_are_reported_in_the_order_in_which_they_are_found() -> None:
    assert messages("x + 1 == device.foo && y.z(1 + 'a')") == [
        "undeclared reference to 'x' (in container '')",
        "undefined field 'foo'",
        "found no matching overload for '_+_' applied to '(int, string)'",
        "undeclared reference to 'y' (in container '')",
        "undeclared reference to 'z' (in container '')",
    ]


def test_the_text_of_issues_is_in_the_order_of_the_source() -> None:
    with pytest.raises(CompileError) as caught:
        checked("y.z(x)")
    assert str(caught.value) == "\n".join(
        f"ERROR: <input>:1:{column}: undeclared reference to '{name}' (in container '')\n | y.z(x)\n | {pointer}"
        for column, name, pointer in ((1, "y", "^"), (4, "z", "...^"), (5, "x", "....^"))
    )


def test_an_error_fits_everywhere_so_that_it_is_reported_once() -> None:
    assert messages("nosuch + 1 > 2 && nosuch.a.b.startsWith('x')") == [
        "undeclared reference to 'nosuch' (in container '')",
        "undeclared reference to 'nosuch' (in container '')",
    ]


def test_calls_refer_to_the_overloads_that_fit() -> None:
    result = checked("device.attributes['a'].b > 1 && 2 > 1")
    overloads = {reference.overloads for reference in result.references.values()}
    assert ("greater_int64",) in overloads
    assert ("greater_int64", "greater_uint64_int64", "greater_double_int64") in overloads


def test_names_refer_to_variables_types_and_constants() -> None:
    root = checked("google.protobuf.NullValue.NULL_VALUE == 0 && type(device) == google.protobuf.Timestamp")
    names = {reference.name: reference.value for reference in root.references.values() if reference.name}
    assert names["device"] is None
    assert names["google.protobuf.NullValue.NULL_VALUE"] == 0
    assert str(names["google.protobuf.Timestamp"]) == "google.protobuf.Timestamp"


def test_a_type_of_the_host_is_known_to_the_checker_but_has_no_value() -> None:
    result = checked("type(device) == kubernetes.DRADevice")
    assert isinstance(result.parsed.root, Call)
    named = result.parsed.root.args[1]
    assert named == Ident(named.id, "kubernetes.DRADevice")
    assert result.references[named.id] == Reference("kubernetes.DRADevice")
    assert result.types[named.id] == type_of(object_type("kubernetes.DRADevice"))


def test_dotted_names_are_one_identifier_afterwards() -> None:
    root = checked("net.IP == int").parsed.root
    assert isinstance(root, Call)
    assert [part.name for part in root.args if isinstance(part, Ident)] == ["net.IP", "int"]


def test_a_function_with_a_dotted_name_has_no_target_afterwards() -> None:
    root = checked("optional.of(1)").parsed.root
    assert isinstance(root, Call)
    assert (root.function, root.target) == ("optional.of", None)


def test_the_leading_dot_of_a_name_is_gone_afterwards() -> None:
    root = checked(".device.driver").parsed.root
    assert isinstance(root, Select)
    assert isinstance(root.operand, Ident)
    assert root.operand.name == "device"


def test_a_dotted_type_name_wins_over_a_field_of_a_local_variable() -> None:
    assert checked("[{'IP': 1}].all(net, net.IP == int)").output == BOOL


@pytest.mark.parametrize(
    ("expression", "output"),
    [
        ("[1].map(device, device)", list_of(INT)),
        ("[1].map(x, ['a'].map(x, x))", list_of(list_of(STRING))),
        ("{'a': 1}.transformList(k, v, v)", list_of(INT)),
        ("['a'].transformMap(i, x, x)", map_of(INT, STRING)),
        ("cel.bind(x, [], x + [1])", list_of(INT)),
        ("true ? 1 : dyn('a')", DYN),
        ("[[], [1]]", list_of(list_of(INT))),
        ("[]", list_of(DYN)),
        ("device.?driver", optional_of(STRING)),
        ("device.attributes.?a.b", optional_of(ANY)),
        ("{'a': optional.of(1)}.?a", optional_of(optional_of(INT))),
        ("has(device.driver)", BOOL),
    ],
)
def test_types_of_expressions(expression: str, output: Type) -> None:
    assert checked(expression).output == output


def test_every_node_has_a_type_without_variables() -> None:
    result = checked("[].all(x, x == 1) && {}.map(k, [k]) == [] && optional.none().orValue(1) == 1")
    assert not [t for t in result.types.values() if "_var" in str(t)]


def test_elements_of_a_list_literal_may_differ_only_where_mixed_types_are_allowed() -> None:
    assert checked("[1, 'a']", replace(DEVICE, homogeneous_literals=False)).output == list_of(DYN)


def tree(root: Expr) -> Parsed:
    return Parsed(root, Source("x", {}, {}), {})


@pytest.mark.long
def test_a_tree_that_is_deeper_than_the_stack_is_checked() -> None:
    chain: Expr = Ident(0, "device")
    for id in range(1, 20_000):
        chain = Select(id, chain, "attributes" if id == 1 else "a")
    assert check(tree(chain), DEVICE).output == DYN
    sum: Expr = Literal(0, 1)
    for id in range(1, 20_000, 2):
        sum = Call(id, "_+_", None, (sum, Literal(id + 1, 1)))
    assert check(tree(sum), DEVICE).output == INT


@pytest.mark.parametrize(
    "expression",
    ["[1]" + ".map(x, {x: x})" * 40, "[" * 200 + "]" * 200, "[1]" + ".map(x, [[[[[[x]]]]]])" * 30],
)
def test_types_that_grow_without_limit_are_rejected(expression: str) -> None:
    assert messages(expression)[0] == "the type of this expression is nested too deeply"


def test_a_hundred_issues_are_shown() -> None:
    with pytest.raises(CompileError) as caught:
        checked("[" + ", ".join(f"x{i}" for i in range(150)) + "]")
    assert len(caught.value.issues) == 150
    assert str(caught.value).endswith("50 more errors were truncated")


_WORDS = [row["expression"] for row in VECTORS["device"]]
_PIECES = sorted({piece for word in _WORDS for piece in re.findall(r"\w+|\W", word)})


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_nothing_but_a_compile_error_comes_out_of_any_text(text: str) -> None:
    problem(text, DEVICE)


@given(
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4), st.sampled_from([" + ", " == ", " && ", ", ", " in "])
)
def test_nothing_but_a_compile_error_comes_out_of_expressions_put_together(words: list[str], between: str) -> None:
    joined = between.join(f"({word})" for word in words)
    for expression in (joined, f"[{joined}]", f"{{{joined}: {joined}}}", f"({joined}).map(x, {words[0]})"):
        problem(expression, DEVICE_WITH_LISTS)
