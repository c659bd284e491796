import pytest

from devlet.cel.ast import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Parsed, Select, StructLiteral
from devlet.cel.issues import CompileError
from devlet.cel.macros import STANDARD
from devlet.cel.parser import parse
from devlet.cel.values import Uint


def issues(text: str, macros: frozenset[str] | None = None) -> list[tuple[int, str]]:
    with pytest.raises(CompileError) as caught:
        parse(text) if macros is None else parse(text, macros)
    return [(issue.offset, issue.message) for issue in caught.value.issues]


def grouped(text: str) -> str:
    """Calls as `f(…)`, to see what belongs together."""

    def show(node: object) -> str:
        match node:
            case Call(function=function, target=target, args=args):
                return f"{'' if target is None else show(target) + '.'}{function}({', '.join(map(show, args))})"
            case Select(operand=operand, field=field):
                return f"{show(operand)}.{field}"
            case Ident(name=name):
                return name
            case Literal(value=value):
                return repr(value)
            case _:
                return type(node).__name__

    return show(parse(text).root)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", "_+_(a, _*_(b, c))"),
        ("a * b + c", "_+_(_*_(a, b), c)"),
        ("a - b - c", "_-_(_-_(a, b), c)"),
        ("a < b == c", "_==_(_<_(a, b), c)"),
        ("a + b in c", "@in(_+_(a, b), c)"),
        ("a || b && c", "_||_(a, _&&_(b, c))"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("a || b ? c : d", "_?_:_(_||_(a, b), c, d)"),
        ("-a.b", "-_(a.b)"),
        ("!a[0]", "!_(_[_](a, 0))"),
        ("!a && b", "_&&_(!_(a), b)"),
        ("-a * b", "_*_(-_(a), b)"),
        ("a.?b[?c]", "_[?_](_?._(a, 'b'), c)"),
        ("a.f(b).g()", "a.f(b).g()"),
        (".a.b", ".a.b"),
        (".f(a)", ".f(a)"),
    ],
)
def test_operators_bind_as_in_the_grammar(text: str, expected: str) -> None:
    assert grouped(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a && b", "_&&_(a, b)"),
        ("a && b && c", "_&&_(_&&_(a, b), c)"),
        ("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
        ("a || b || c || d || e", "_||_(_||_(_||_(a, b), c), _||_(d, e))"),
        ("a && (b && c)", "_&&_(a, _&&_(b, c))"),
    ],
)
def test_chains_of_and_and_or_are_balanced(text: str, expected: str) -> None:
    assert grouped(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-1", "-1"),
        ("- 1", "-1"),
        ("--1", "1"),
        ("---1", "-_(1)"),
        ("-(1)", "-_(1)"),
        ("-1.5", "-1.5"),
        ("-1u", "-_(1)"),
        ("-1.f()", "-1.f()"),
        ("a - 1", "_-_(a, 1)"),
        ("a -1", "_-_(a, 1)"),
        ("!-1", "!_(-1)"),
        ("!!a", "a"),
        ("!(!a)", "!_(!_(a))"),
        ("--a", "a"),
        ("-9223372036854775808", "-9223372036854775808"),
    ],
)
def test_a_minus_before_a_number_belongs_to_it_and_pairs_cancel_out(text: str, expected: str) -> None:
    assert grouped(text) == expected


def test_literals_have_their_types() -> None:
    root = parse('[1, 2u, 1.5, "s", b"b", true, null]').root
    assert isinstance(root, ListLiteral)
    values = [element.value for element in root.elements if isinstance(element, Literal)]
    assert values == [1, 2, 1.5, "s", b"b", True, None]
    assert list(map(type, values)) == [int, Uint, float, str, bytes, bool, type(None)]


@pytest.mark.parametrize(
    "text", ["[]", "[,]", "[1]", "[1,]", "{}", "{,}", "{1: 2,}", "T{}", "T{,}", "T{a: 1,}", "a.T{}"]
)
def test_lists_maps_and_structs_may_end_in_a_comma(text: str) -> None:
    parse(text)


def test_elements_entries_and_fields_may_be_optional() -> None:
    listed, mapped, struct = (parse(text).root for text in ("[a, ?b, ?c]", "{a: 1, ?b: 2}", "T.U{a: 1, ?b: 2}"))
    assert isinstance(listed, ListLiteral)
    assert listed.optionals == {1, 2}
    assert isinstance(mapped, MapLiteral)
    assert [entry.optional for entry in mapped.entries] == [False, True]
    assert isinstance(struct, StructLiteral)
    assert struct.type_name == "T.U"
    assert [(field.name, field.optional) for field in struct.fields] == [("a", False), ("b", True)]


def test_a_struct_may_have_a_leading_dot() -> None:
    root = parse(".a.b{c: 1}.d").root
    assert isinstance(root, Select)
    assert isinstance(root.operand, StructLiteral)
    assert root.operand.type_name == ".a.b"


@pytest.mark.spec("DA-4.3q")
def test_keywords_of_the_grammar_are_no_fields_but_reserved_words_are() -> None:
    assert issues("a.in") == [
        (2, "Syntax error: no viable alternative at input '.in'"),
        (
            4,
            "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
            "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ),
    ]
    assert issues("a.true") == [(2, "Syntax error: mismatched input 'true' expecting IDENTIFIER")]
    assert grouped("a.package.if") == "a.package.if"
    assert grouped("a['in']") == "_[_](a, 'in')"


@pytest.mark.parametrize("word", ["as", "if", "package", "namespace", "void", "while"])
def test_reserved_words_are_no_variables_and_no_functions(word: str) -> None:
    assert issues(word) == [(0, f"reserved identifier: {word}")]
    assert issues(f" .{word}(99999999999999999999)") == [(1, f"reserved identifier: {word}")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("99999999999999999999", [(0, "invalid int literal")]),
        ("1 + -9223372036854775809", [(4, "invalid int literal")]),
        ("99999999999999999999u", [(0, "invalid uint literal")]),
        ("1e400", [(0, "invalid double literal")]),
        (r"a == '\ud800'", [(5, "invalid unicode code point")]),
        (r"b'\u0041'", [(0, "unable to unescape string")]),
        ("a.`b`", [(2, "unsupported syntax: '`'")]),
        ("T{a: 1, `b`: 2}", [(2, "unsupported syntax: '`'")]),
        ("if + else", [(0, "reserved identifier: if"), (5, "reserved identifier: else")]),
    ],
)
def test_what_the_grammar_allows_may_still_be_wrong(text: str, expected: list[tuple[int, str]]) -> None:
    assert issues(text) == expected


def test_without_optionals_their_syntax_is_refused() -> None:
    assert issues("a.?b", STANDARD) == [(1, "unsupported syntax '.?'")]
    assert issues("a[?b]", STANDARD) == [(1, "unsupported syntax '[?'")]
    assert issues("[1, ?a]", STANDARD) == [(4, "unsupported syntax '?'")]
    assert issues("{?a: 1}", STANDARD) == [(1, "unsupported syntax '?'")]
    assert issues("T{?a: 1}", STANDARD) == [(2, "unsupported syntax '?'")]


def positions(parsed: Parsed) -> tuple[str, int]:
    source = parsed.source
    return source.snippet(parsed.root.id), source.positions[parsed.root.id]


@pytest.mark.parametrize(
    ("text", "snippet", "position"),
    [
        (" a ", "a", 1),
        (".a", ".a", 1),
        ("-1", "-1", 0),
        ("(a) + (b)", "(a) + (b)", 4),
        ("(a + b)", "a + b", 3),
        ("a && b && c", "a && b && c", 7),
        ("a ? b : c", "a ? b : c", 2),
        ("!!!a", "!!!a", 0),
        ("a.b.c", "a.b.c", 3),
        ("a.?b", "a.?b", 1),
        ("a[0]", "a[0]", 1),
        ("f(a)", "f(a)", 1),
        ("a.f(b)", "a.f(b)", 3),
        ("[a]", "[a]", 0),
        ("{a: b}", "{a: b}", 0),
        ("T{a: b}", "T{a: b}", 1),
        ("[1].all(x, x > 0)", "[1].all(x, x > 0)", 7),
        ("has(a.b)", "has(a.b)", 3),
    ],
)
def test_every_node_knows_its_text_and_where_errors_point(text: str, snippet: str, position: int) -> None:
    assert positions(parse(text)) == (snippet, position)


def test_what_a_macro_made_points_at_the_macro() -> None:
    parsed = parse("[1].all(x, x > 0)")
    assert isinstance(parsed.root, Comprehension)
    assert parsed.source.positions[parsed.root.init.id] == 7
    assert parsed.source.snippet(parsed.root.init.id) == ""
    assert parsed.macro_calls[parsed.root.id].function == "all"


@pytest.mark.spec("DA-4.3r")
@pytest.mark.parametrize("nest", ["({})", "[{}]", "f({})", "{{1: {}}}", "a.f({})", "!({})", "a[{}]", "true ? 1 : {}"])
def test_an_expression_may_be_nested_249_deep_but_not_10_kilobytes(nest: str) -> None:
    deep = "1"
    for _ in range(249):
        deep = nest.format(deep)
    parse(deep)
    assert issues("(" * 10_000) == [(-1, "expression recursion limit exceeded: 250")]
    for _ in range(2):
        deep = nest.format(deep)
    assert issues(deep) == [(-1, "expression recursion limit exceeded: 250")]


@pytest.mark.parametrize("link", [" + 1", " < 1", ".b", "[0]", ".f()"])
def test_a_chain_may_have_250_links(link: str) -> None:
    parse("a" + link * 250)
    assert issues("a" + link * 251) == [(-1, "max recursion depth exceeded")]


def test_chains_of_and_may_be_long() -> None:
    parse("a" + " && a" * 5000)


def test_operands_in_parentheses_count_twice() -> None:
    parse("1+(" * 124 + "1" + ")" * 124)
    assert issues("1+(" * 125 + "1" + ")" * 125) == [(-1, "expression recursion limit exceeded: 250")]


def test_an_expression_has_at_most_100000_code_points() -> None:
    parse("'" + "é" * 99_998 + "'")
    message = "expression code point size exceeds limit: size: 100001, limit 100000"
    assert issues("a" * 100_001) == [(-1, message)]


def test_macros_that_copy_each_other_do_not_fill_the_memory() -> None:
    parse("a" + ".optMap(v, v)" * 10)
    assert issues("a" + ".optMap(v, v)" * 100) == [
        (138, "expression is too large: its macros expand to more than 12000 nodes")
    ]


def test_more_than_a_hundred_syntax_errors_are_one_more() -> None:
    found = issues("# " * 150)
    assert len(found) == 101
    assert found[-1] == (200, "Syntax error: More than 100 syntax errors")


@pytest.mark.parametrize("piece", ["(", "[", "a.", '"', "-", ")", "{:", "f(+,", "r'''", "a ? "])
def test_large_nonsense_is_refused_and_does_not_hang(piece: str) -> None:
    with pytest.raises(CompileError):
        parse(piece * (10_000 // len(piece)))
