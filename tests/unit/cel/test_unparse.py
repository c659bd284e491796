from dataclasses import replace

import pytest

from devlet.cel.ast import Comprehension
from devlet.cel.parser import parse
from devlet.cel.unparse import expression_text


def text_of(text: str) -> str:
    parsed = parse(text)
    return expression_text(parsed.root, parsed)


@pytest.mark.parametrize(
    "text",
    [
        "a + b * c - d % e / f",
        "(a + b) * c",
        "a - (b - c)",
        "a < b == c",
        "a == (b < c)",
        "a && b || c && d",
        "a && (b || c)",
        "a && (b && c)",
        "a && b && c && d && e",
        "(a ? b : c) ? (d ? e : f) : g ? h : i",
        "!a.b",
        "!(a && b)",
        "!(!a)",
        "-(-a)",
        "-(1)",
        "-(1.f())",
        "-1",
        "-1.f()",
        "(-a).f()",
        "(a + b).c[d.e].?f[?g]",
        'a["in"] in ["x", ?y]',
        '{"a": 1, ?b: 2u}',
        "T.U{a: 1.5, ?b: null}",
        ".a.b(c, .d())",
        'b"\\xffa\\n"',
        "has(a.b.c)",
        "[1, 2].all(x, x > 0)",
        "a.map(x, x.exists(y, y), x + 1).filter(z, !z)",
        "a.transformMap(k, v, v != k, v)",
        "cel.bind(v, a.b, v + v)",
        "a.?b.optMap(v, v + 1).orValue(0)",
        "a.optFlatMap(v, v.?c)",
        "(a || b).all(x, x) && has(a.b)",
    ],
)
def test_what_is_written_as_people_write_it_stays_as_it_is(text: str) -> None:
    assert text_of(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("((a))", "a"),
        ("(a*b)+c", "a * b + c"),
        ("(a && b) && c", "a && b && c"),
        ("'it\\'s \"q\"\\t'", '"it\'s \\"q\\"\\t"'),
        ("'\\u200b\\x07é'", '"\\U0000200b\\U00000007é"'),
        ("0x10", "16"),
        ("1e3", "1000.0"),
        ("a?b:c", "a ? b : c"),
        ("!!!a", "!a"),
    ],
)
def test_the_rest_is_tidied_up(text: str, expected: str) -> None:
    assert text_of(text) == expected


def test_parts_of_an_expansion_can_be_shown_too() -> None:
    parsed = parse("a.all(x, x > 0)")
    assert isinstance(parsed.root, Comprehension)
    assert expression_text(parsed.root.step, parsed) == "@result && x > 0"
    assert expression_text(parsed.root, replace(parsed, macro_calls={})) == (
        "cel.@fold(a, @result, true, @not_strictly_false(@result), @result && x > 0, @result)"
    )
