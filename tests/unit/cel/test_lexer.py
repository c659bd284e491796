import pytest

from devlet.cel.lexer import KINDS, tokenize


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokenize(text).tokens[:-1]]


def texts(text: str) -> list[str]:
    return [token.text for token in tokenize(text).tokens[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 0x1F 12u 0xffU", ["NUM_INT", "NUM_INT", "NUM_UINT", "NUM_UINT"]),
        ("1.5 .5 1e9 1.5E-3 .5e+2", ["NUM_FLOAT"] * 5),
        ("1.", ["NUM_INT", "."]),
        ("1.e5", ["NUM_INT", ".", "IDENTIFIER"]),
        ("1e", ["NUM_INT", "IDENTIFIER"]),
        ("0x", ["NUM_INT", "IDENTIFIER"]),
        ("1ub", ["NUM_UINT", "IDENTIFIER"]),
        ("in inn true truely null false", ["in", "IDENTIFIER", "true", "IDENTIFIER", "null", "false"]),
        ("_a1 package", ["IDENTIFIER", "IDENTIFIER"]),
        ("`a.b/c-d e`", ["ESC_IDENTIFIER"]),
        ("a<=b>=c<d>e", ["IDENTIFIER", "<=", "IDENTIFIER", ">=", "IDENTIFIER", "<", "IDENTIFIER", ">", "IDENTIFIER"]),
        ("!a!=b", ["!", "IDENTIFIER", "!=", "IDENTIFIER"]),
        ("a // b + c\n+ d", ["IDENTIFIER", "+", "IDENTIFIER"]),
        ("""'a' "b" b'c' B"d" r'e' bR"f" """, ["STRING", "STRING", "BYTES", "BYTES", "STRING", "BYTES"]),
        ("rb'a'", ["IDENTIFIER", "STRING"]),
    ],
)
def test_text_is_cut_into_the_longest_tokens(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


def test_strings_end_at_the_first_quote_that_is_not_escaped() -> None:
    assert texts(r""""a\"b" 'c"d' "e\\" r"f\"""") == [r'"a\"b"', "'c\"d'", r'"e\\"', r'r"f\"']


def test_triple_quoted_strings_may_span_lines_and_hold_quotes() -> None:
    assert texts("\"\"\"a\"\n'b\"\"\" r'''c\\\n'''") == ['"""a"\n\'b"""', "r'''c\\\n'''"]


def test_an_empty_string_before_a_quote_is_not_a_triple_quote() -> None:
    assert texts('"" "a"') == ['""', '"a"']
    assert texts("''''''") == ["''''''"]


def test_tokens_know_where_they_are() -> None:
    token = tokenize("  é + ab").tokens[1]
    assert (token.text, token.start, token.end) == ("ab", 6, 8)


def test_the_last_token_is_the_end() -> None:
    assert tokenize("a ").tokens[-1] == ("<EOF>", "", 2)


@pytest.mark.parametrize(
    ("text", "broken", "rest"),
    [
        ("a # b", ["#"], ["a", "b"]),
        ("a & b", ["& "], ["a", "b"]),
        ("a | b", ["| "], ["a", "b"]),
        ("a = b", ["= "], ["a", "b"]),
        ("a =", ["="], ["a"]),
        ('"abc', ['"abc'], []),
        ("'a\nb'", ["'a\n", "'"], ["b"]),
        (r"'\q' + a", [r"'\q", "' + a"], []),
        (r"'\x4g'", [r"'\x4g", "'"], []),
        (r"'\u12'", [r"'\u12'"], []),
        (r"'\U0010'", [r"'\U0010'"], []),
        (r"'\4'", [r"'\4", "'"], []),
        (r"'\09'", [r"'\09", "'"], []),
        ("``a", ["``"], ["a"]),
        ("`a$`", ["`a$", "`"], []),
        ("'''a", ["'a"], ["''"]),
    ],
)
def test_an_invalid_token_is_an_issue_and_lexing_continues(text: str, broken: list[str], rest: list[str]) -> None:
    read = tokenize(text)
    assert [issue.message for issue in read.issues] == [
        f"Syntax error: token recognition error at: '{piece}'" for piece in broken
    ]
    assert texts(text) == rest


def test_the_text_between_two_tokens_leaves_out_what_is_broken() -> None:
    read = tokenize("a # + $ b")
    assert read.text(read.tokens[0], read.tokens[2]) == "a  +  b"


def test_every_symbol_is_a_kind_of_token() -> None:
    symbols = [kind for kind in KINDS if not kind.isupper() and kind != "<EOF>"]
    assert len(symbols) == 28
    assert [kinds(symbol) for symbol in symbols] == [[symbol] for symbol in symbols]
