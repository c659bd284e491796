"""Whatever somebody writes as a selector, the answer comes soon and says what is wrong. Nothing hangs or crashes."""

import time
from typing import Any

import pytest

from devlet.alloc.cases import answer_case, read_case
from devlet.alloc.device_cel import DeviceInput, device_environment
from devlet.alloc.lint import lint
from devlet.objects.documents import view
from devlet.objects.types.slice import Device

DOCUMENT = {"driver": "gpu.example.com", "attributes": {"s": {"string": "a" * 64}, "n": {"int": 1}}}
S = 'device.attributes["gpu.example.com"].s'


def answer(expression: str) -> dict[str, Any]:
    end = time.process_time() + 2
    case = {"id": "c", "expression": expression, "device": DOCUMENT, "features": {"listTypeAttributes": True}}
    return answer_case(read_case(case), lambda: time.process_time() > end)


ERRORS = {
    "": "Syntax error: mismatched input '<EOF>' expecting",
    "?!": "Syntax error: extraneous input '?'",
    "1 +": "Syntax error: mismatched input '<EOF>'",
    '"abc': "Syntax error: token recognition error at: '\"abc'",
    "'\\q'": "Syntax error: token recognition error",
    "a.b.c": "undeclared reference to 'a'",
    "device.lost": "undefined field 'lost'",
    "1 == 'a'": "found no matching overload for '_==_' applied to '(int, string)'",
    "nothing(1)": "undeclared reference to 'nothing'",
    "[1, 'a'] == []": "expected type 'int' but found 'string'",
    "has(device)": "invalid argument to has() macro",
    "[1].all(1, true)": "argument must be a simple name",
    "99999999999999999999 == 1": "invalid int literal",
    "'a'.matches('(')": "invalid matches argument",
    "duration('x') == duration('1s')": "invalid duration argument",
    "timestamp('x') == timestamp('y')": "invalid timestamp argument",
    "int('x') == 1": "program instantiation failed: type conversion error from 'string' to 'int'",
    "1": "must evaluate to bool or the unknown type, not int",
    "device.attributes": "must evaluate to bool or the unknown type, not map",
    "kubernetes.Lost{} == 1": "undeclared reference to 'kubernetes.Lost'",
    "\u0000": "Syntax error: token recognition error",
    "in": "Syntax error: mismatched input 'in'",
    "if": "reserved identifier: if",
}


@pytest.mark.parametrize("expression", ERRORS, ids=[repr(text) for text in ERRORS])
def test_every_kind_of_mistake_is_named(expression: str) -> None:
    found = answer(expression)
    assert found["result"] == "compile-error"
    assert ERRORS[expression] in found["error"]


FAILURES = {
    "1 / 0 == 1": "division by zero",
    "1 % 0 == 1": "modulus by zero",
    "9223372036854775807 * 2 == 1": "integer overflow",
    "[1][5] == 1": "index out of bounds: 5",
    f"{S} > 1": "no such overload",
    f"{S}": "CEL result of type string could not be converted to bool",
    'device.attributes["gpu.example.com"].lost': "no such key: lost",
    "quantity('x').isInteger()": "quantities must match the regular expression",
    "semver('x').major() == 1": "No Major.Minor.Patch elements found",
    f"{S}.matches({S} + '(')": "error parsing regexp: missing closing )",
    "optional.none().value() == 1": "optional.none() dereference",
    "ip('x').isLoopback()": 'IP Address "x" parse error',
}


@pytest.mark.parametrize("expression", FAILURES, ids=[repr(text) for text in FAILURES])
def test_every_kind_of_failure_is_named(expression: str) -> None:
    found = answer(expression)
    assert found["result"] == "runtime-error"
    assert FAILURES[expression] in found["error"]


LARGE = {
    "and": " && ".join(["true"] * 1200),
    "parentheses": "(" * 5000 + "true" + ")" * 5000,
    "not": "!" * 9999 + "true",
    "minus": "-" * 9999 + "1 == 1",
    "sum": "+".join(["1"] * 5000) + " > 0",
    "selections": "device" + ".a" * 5000,
    "indices": "device.attributes" + '["a"]' * 2000,
    "lists": "[" * 5000 + "]" * 5000,
    "maps": "{" * 5000 + "}" * 5000,
    "conditions": "true ? " * 900 + "true" + " : false" * 900,
    "calls": "f(" * 3000 + ")" * 3000,
    "methods": "1" + ".f()" * 2500,
    "text": '"' + "é😀" * 5000 + '" == "b"',
    "quotes": '"' * 9999,
    "no-tokens": "$" * 10_000,
    "controls": "\x00\x01" * 5000,
    "operators": "&&||" * 2500,
    "digits": "1" * 10_000 + " == 1",
    "exponent": "1e" + "9" * 5000 + " == 1.0",
    "macros": "[1].all(x, " * 300 + "true" + ")" * 300,
    "binds": "".join(f"cel.bind(a{i}, 1, " for i in range(400)) + "true" + ")" * 400,
}


@pytest.mark.parametrize("name", LARGE)
def test_ten_kilobytes_of_any_text_get_an_answer(name: str) -> None:
    assert answer(LARGE[name])["result"] in (True, False, "compile-error", "runtime-error")


def doubled(start: str, times: int, step: str) -> str:
    binds = "".join(f"cel.bind(a{i + 1}, {step.format(a=f'a{i}')}, " for i in range(times))
    return f"cel.bind(a0, {start}, {binds}a{times}.size() > 0" + ")" * (times + 1)


BOMBS = {
    "nested-loops": "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))",
    "huge-range": "lists.range(9223372036854775807).size() > 0",
    "large-range": "lists.range(100000000).size() > 0",
    "ranges": "lists.range(1000000).map(x, lists.range(1000000)).size() > 0",
    "texts": doubled('"aaaaaaaaaaaaaaaa"', 40, "{a} + {a}"),
    "lists": doubled("[1, 2, 3]", 40, "{a} + {a}"),
    "replace": doubled('"aaaaaaaaaaaaaaaa"', 10, '{a}.replace("a", "aaaaaaaaaaaaaaaa")'),
    "sort": "lists.range(10000).sortBy(x, -x).size() > 0",
    "flatten": "[[[[1]]]].flatten(9223372036854775807).size() > 0",
    "distinct": "lists.range(20000).distinct().size() > 0",
    "sets": "sets.equivalent(lists.range(5000), lists.range(5000))",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_cost_bomb_ends_at_the_limit_of_cost_or_time(name: str) -> None:
    found = answer(BOMBS[name])
    assert found["result"] == "runtime-error"
    assert found["error"] in ("operation cancelled: actual cost limit exceeded", "operation interrupted")


PATTERNS = ["(a+)+$b", "(a*)*(a*)*(a*)*c", "(a|aa)+$b", "(a|a?)+b", "(.*a){20}b", "((a{30}){30}){2}b"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_takes_no_more_than_linear_time(pattern: str) -> None:
    assert answer(f'{S}.matches("{pattern}")')["result"] in (False, "compile-error")


@pytest.mark.parametrize("expression", [*ERRORS, *FAILURES, *LARGE.values(), *BOMBS.values()], ids=range(67))
def test_lint_answers_too(expression: str) -> None:
    end = time.process_time() + 1
    device = DeviceInput("gpu.example.com", view(Device, DOCUMENT))
    assert isinstance(
        lint(expression, device_environment(stored=False), [device], give_up=lambda: time.process_time() > end), list
    )
