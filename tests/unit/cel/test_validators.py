"""Literals that are refused although their types are right."""

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import Environment, kubernetes
from devlet.cel.issues import CompileError
from devlet.cel.parser import parse

BASE = kubernetes((1, 36), stored=True)


def issues(expression: str, environment: Environment = BASE) -> list[tuple[str, int]]:
    try:
        check(parse(expression, environment.macros), environment)
    except CompileError as e:
        return [(issue.message, issue.offset) for issue in e.issues]
    return []


@pytest.mark.spec("DA-4.3t")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("duration('x') > duration('1h')", [("invalid duration argument", 9)]),
        ("duration('1h') > duration('1000000000000h')", [("invalid duration argument", 26)]),
        ("timestamp('2020-13-01T00:00:00Z') > timestamp(0)", [("invalid timestamp argument", 10)]),
        ("timestamp(99999999999999) > timestamp(0)", [("invalid timestamp argument", 10)]),
        ("'a'.matches('[')", [("invalid matches argument", 12)]),
        ("[1].all(x, 'a'.matches('(') || duration('x') > duration('y'))", [
            ("invalid duration argument", 40),
            ("invalid duration argument", 56),
            ("invalid matches argument", 23),
        ]),
    ],
)  # fmt: skip
def test_literals_that_cannot_be_parsed_are_refused(expression: str, expected: list[tuple[str, int]]) -> None:
    assert sorted(issues(expression)) == sorted(expected)


@pytest.mark.parametrize(
    "expression",
    ["duration('1h') > duration('-1.5s')", "timestamp(1) > timestamp('2020-01-01T00:00:00Z')", "'a'.matches('b+')"],
)
def test_good_literals_pass(expression: str) -> None:
    assert issues(expression) == []


def test_only_literals_are_looked_at() -> None:
    assert issues("duration('x' + 'y') > duration('1h')") == []


def test_of_the_global_form_of_matches_the_text_is_taken_for_the_pattern_as_in_the_reference() -> None:
    assert issues("matches('[', 'a')") == [("invalid matches argument", 8)]
    assert issues("matches('a', '[')") == []


@pytest.mark.spec("DA-4.3u")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1, 'a', 2.0]", [("expected type 'int' but found 'string'", 4)]),
        ("[1, dyn(2)]", [("expected type 'int' but found 'dyn'", 7)]),
        ("[int, string]", [("expected type 'type(int)' but found 'type(string)'", 6)]),
        ("[1, ?optional.of('a')]", [("expected type 'int' but found 'string'", 16)]),
        ("{'a': 1, 2: 'b'}", [
            ("expected type 'string' but found 'int'", 9),
            ("expected type 'int' but found 'string'", 12),
        ]),
        ("{'a': 1, ?'b': optional.of('c')}", [("expected type 'int' but found 'string'", 26)]),
    ],
)  # fmt: skip
def test_lists_and_maps_have_one_type_of_elements(expression: str, expected: list[tuple[str, int]]) -> None:
    assert issues(expression) == expected


@pytest.mark.parametrize(
    "expression", ["[]", "{}", "[1, 2]", "[[], [1]]", "{'a': [], 'b': [1]}", "[?optional.none(), 1]"]
)
def test_uniform_literals_pass(expression: str) -> None:
    assert issues(expression) == []


def test_arguments_of_format_may_be_mixed_at_any_depth() -> None:
    assert issues("'%d %s'.format([1, 'a']) == '%s'.format([[1, 'a']])") == []
    assert issues("['%d %s'.format([1, 'a'])] == [1, 'a']") == [("expected type 'int' but found 'string'", 34)]


def test_an_element_of_unknown_type_that_may_be_missing_is_no_crash_as_it_is_in_the_reference() -> None:
    assert issues("[?dyn(optional.of(1)), 2]") == [("expected type 'dyn' but found 'int'", 23)]


def test_validators_wait_until_the_types_are_right() -> None:
    assert issues("duration('x') > 1") == [
        ("found no matching overload for '_>_' applied to '(duration, int)'", 14)
    ]  # fmt: skip
