"""The messages are the reference's own, recorded from it."""

import pytest

from devlet.cel.issues import CompileError, Issue
from devlet.cel.lexer import tokenize
from devlet.cel.parser import parse
from devlet.cel.syntax_errors import syntax_errors

_LITERALS = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
SETS = {
    "OPERAND": "{'[', '{', '(', '.', '-', '!', " + _LITERALS + "}",
    "ARGUMENTS": "{'[', '{', '(', ')', '.', '-', '!', " + _LITERALS + "}",
    "ENTRIES": "{'[', '{', '}', '(', '.', ',', '-', '!', '?', " + _LITERALS + "}",
    "INDEX": "{'[', '{', '(', '.', '-', '!', '?', " + _LITERALS + "}",
    "FIELDS": "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
}


def messages(text: str) -> list[str]:
    """Line, column and message of each error, with the longer sets by name."""
    with pytest.raises(CompileError) as caught:
        parse(text)
    found = [line.removeprefix("ERROR: <input>:") for line in str(caught.value).split("\n") if line[:5] == "ERROR"]
    return [_short(line.replace(": Syntax error: ", " ").replace(": unsupported", " unsupported")) for line in found]


def _short(message: str) -> str:
    for name, expected in SETS.items():
        message = message.replace(expected, name)
    return message


@pytest.mark.spec("DA-4.4p")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:0 mismatched input '<EOF>' expecting OPERAND"]),
        ("   ", ["1:4 mismatched input '<EOF>' expecting OPERAND"]),
        ("true true", ["1:6 extraneous input 'true' expecting <EOF>"]),
        ("true true true", ["1:6 mismatched input 'true' expecting <EOF>"]),
        ("1 +", ["1:4 mismatched input '<EOF>' expecting OPERAND"]),
        ("1 + * 2", ["1:5 extraneous input '*' expecting OPERAND"]),
        ("(", ["1:2 mismatched input '<EOF>' expecting OPERAND"]),
        ("(1", ["1:3 missing ')' at '<EOF>'"]),
        ("f(1", ["1:4 missing ')' at '<EOF>'"]),
        ("f(1,)", ["1:5 mismatched input ')' expecting OPERAND"]),
        ("f(,)", ["1:3 extraneous input ',' expecting ARGUMENTS"]),
        ("[1, 2", ["1:6 mismatched input '<EOF>' expecting {']', ','}"]),
        ("[1 2]", ["1:4 extraneous input '2' expecting {']', ','}"]),
        ("{", ["1:2 mismatched input '<EOF>' expecting ENTRIES"]),
        ('{"a"}', ["1:5 mismatched input '}' expecting ':'"]),
        ('{"a": }', ["1:7 mismatched input '}' expecting OPERAND"]),
        ('{"a": 1 "b": 2}', ["1:9 mismatched input '\"b\"' expecting {'}', ','}"]),
        ("{:1}", ["1:2 extraneous input ':' expecting ENTRIES", "1:4 mismatched input '}' expecting ':'"]),
        ("a.", ["1:3 no viable alternative at input '.'"]),
        ("a.in == 1", ["1:3 no viable alternative at input '.in'", "1:6 extraneous input '==' expecting OPERAND"]),
        ("a.true", ["1:3 mismatched input 'true' expecting IDENTIFIER"]),
        (
            "a .\n in",
            ["2:2 no viable alternative at input '.\\n in'", "2:4 mismatched input '<EOF>' expecting OPERAND"],
        ),
        ("a ? b", ["1:6 mismatched input '<EOF>' expecting ':'"]),
        ("a ? b c", ["1:7 missing ':' at 'c'"]),
        ("a ? : c", ["1:5 extraneous input ':' expecting OPERAND", "1:8 mismatched input '<EOF>' expecting ':'"]),
        ("? a", ["1:1 extraneous input '?' expecting OPERAND"]),
        ("a[", ["1:3 mismatched input '<EOF>' expecting INDEX"]),
        ("a[1", ["1:4 missing ']' at '<EOF>'"]),
        ("a[]", ["1:3 mismatched input ']' expecting INDEX"]),
        ("a.b{", ["1:5 mismatched input '<EOF>' expecting FIELDS"]),
        ("a.b{c}", ["1:6 mismatched input '}' expecting ':'"]),
        ("a.b{c: }", ["1:8 mismatched input '}' expecting OPERAND"]),
        ("a.b{1: 2}", ["1:5 mismatched input '1' expecting FIELDS"]),
        ("-", ["1:2 no viable alternative at input '-'", "1:2 mismatched input '<EOF>' expecting OPERAND"]),
        ("--", ["1:3 no viable alternative at input '-'", "1:3 mismatched input '<EOF>' expecting OPERAND"]),
        ("- +1", ["1:3 no viable alternative at input '- +'", "1:3 extraneous input '+' expecting OPERAND"]),
        ("!-x", ["1:3 no viable alternative at input '-x'"]),
        ("!", ["1:2 extraneous input '<EOF>' expecting OPERAND"]),
        ("!)", ["1:2 extraneous input ')' expecting OPERAND"]),
        ("a b", ["1:3 extraneous input 'b' expecting <EOF>"]),
        ("a # b", ["1:3 token recognition error at: '#'", "1:5 extraneous input 'b' expecting <EOF>"]),
        ("a & b", ["1:3 token recognition error at: '& '", "1:5 extraneous input 'b' expecting <EOF>"]),
        ('"abc', ["1:1 token recognition error at: '\"abc'", "1:5 mismatched input '<EOF>' expecting OPERAND"]),
        (
            "'a\\q'",
            [
                "1:1 token recognition error at: ''a\\q'",
                "1:5 token recognition error at: '''",
                "1:6 mismatched input '<EOF>' expecting OPERAND",
            ],
        ),
        ("a = 1", ["1:3 token recognition error at: '= '", "1:5 extraneous input '1' expecting <EOF>"]),
        ("a == == b", ["1:6 extraneous input '==' expecting OPERAND"]),
        (") a", ["1:1 extraneous input ')' expecting OPERAND"]),
        ("a.?", ["1:4 mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}", "1:4 unsupported ident kind"]),
        ("a.?1", ["1:4 mismatched input '1' expecting {IDENTIFIER, ESC_IDENTIFIER}", "1:4 unsupported ident kind"]),
        ("a.?b()", ["1:5 mismatched input '(' expecting <EOF>"]),
        (".in", ["1:2 no viable alternative at input '.in'", "1:4 mismatched input '<EOF>' expecting OPERAND"]),
        ("`x`", ["1:1 mismatched input '`x`' expecting OPERAND"]),
        ("a.`x`()", ["1:3 unsupported syntax: '`'", "1:6 mismatched input '(' expecting <EOF>"]),
        ("&& a", ["1:1 extraneous input '&&' expecting OPERAND"]),
        ("a && ", ["1:6 mismatched input '<EOF>' expecting OPERAND"]),
        ("a && || b", ["1:6 extraneous input '||' expecting OPERAND"]),
        ("in", ["1:1 mismatched input 'in' expecting OPERAND", "1:3 mismatched input '<EOF>' expecting OPERAND"]),
        ("1 in", ["1:5 mismatched input '<EOF>' expecting OPERAND"]),
        ("has(", ["1:5 mismatched input '<EOF>' expecting ARGUMENTS"]),
        ("a..b", ["1:3 no viable alternative at input '..'"]),
        ("a, b", ["1:2 mismatched input ',' expecting <EOF>"]),
        ("1; 2", ["1:2 token recognition error at: ';'", "1:4 extraneous input '2' expecting <EOF>"]),
        ("a ? (b : c", ["1:8 missing ')' at ':'"]),
        ("x.all(y, ", ["1:10 mismatched input '<EOF>' expecting OPERAND"]),
        ("((((1)", ["1:7 mismatched input '<EOF>' expecting ')'"]),
        ("[1,,2]", ["1:4 mismatched input ',' expecting ']'"]),
        ("{1:2,,}", ["1:6 extraneous input ',' expecting '}'"]),
        ("a{b:1,,}", ["1:7 extraneous input ',' expecting '}'"]),
        ("$x + 1", ["1:1 token recognition error at: '$'"]),
        ("a\n+\n# b", ["3:1 token recognition error at: '#'"]),
    ],
)
def test_broken_text_is_described_as_in_the_reference(text: str, expected: list[str]) -> None:
    assert messages(text) == expected


def test_tokens_that_are_an_expression_have_no_errors() -> None:
    assert syntax_errors(tokenize("a.b{c: [1, ?2,]}.f(-1, --x)[?0] ? !a : {,}"), 250) == []


def test_recovery_ends_after_thirty_attempts() -> None:
    found = syntax_errors(tokenize("(+ " * 40), 250)
    assert found[-1].message == "Syntax error: error recovery attempt limit exceeded: 30"


def test_recovery_skips_at_most_256_tokens() -> None:
    assert syntax_errors(tokenize("1 " * 300), 250) == [
        Issue("Syntax error: mismatched input '1' expecting <EOF>", 2),
        Issue("error recovery token lookahead limit exceeded: 256"),
    ]


def test_nesting_is_limited_while_recovering_too() -> None:
    assert syntax_errors(tokenize("[1 2, " + "[" * 300), 250)[-1] == Issue("expression recursion limit exceeded: 250")
