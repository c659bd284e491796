"""What holds for every expression, and for text that is nearly one."""

from dataclasses import fields, is_dataclass

from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.issues import CompileError
from devlet.cel.parser import parse
from devlet.cel.unparse import expression_text

NAMES = st.sampled_from(["a", "b", "x1", "_c", "as_"])
LITERALS = st.sampled_from(
    [
        *("0", "-1", "9223372036854775807", "0x1F", "3u", "1.5", "-2e-3", ".5", "true", "false", "null"),
        *("'s'", '"\\u00e9\\n"', "'''t\n'''", "r'\\d'", "b'\\xff'", "b'z'"),
    ]
)
BINARY = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">=", ">", "==", "!=", "in", "&&", "||"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, max_size=4)
    return st.one_of(
        st.builds("({})".format, inner),
        st.builds("{} {} {}".format, inner, BINARY, inner),
        st.builds(lambda terms, op: f" {op} ".join(terms), st.lists(inner, min_size=2, max_size=7), BINARY),
        st.builds("{}{}".format, st.sampled_from(["-", "!", "--", "!!!"]), st.one_of(NAMES, inner.map("({})".format))),
        st.builds("({}).{}".format, inner, NAMES),
        st.builds("({}).?{}".format, inner, NAMES),
        st.builds("({})[{}{}]".format, inner, st.sampled_from(["", "?"]), inner),
        st.builds("({}) ? {} : {}".format, inner, st.one_of(NAMES, inner.map("({})".format)), inner),
        st.builds(lambda items: f"[{', '.join(items)}]", several),
        st.builds(lambda items: f"[?{', ?'.join(['x', *items])},]", several),
        st.builds(lambda items: "{" + ", ".join(f"{item}: {item}" for item in items) + "}", several),
        st.builds("T.U{{f: {}, ?g: {}}}".format, inner, inner),
        st.builds(lambda name, items: f"{name}({', '.join(items)})", NAMES, several),
        st.builds(lambda target, items: f"({target}).f({', '.join(items)})", inner, several),
        st.builds("({}).{}(x, {})".format, inner, st.sampled_from(["all", "exists", "map", "filter"]), inner),
        st.builds("({}).{}(i, v, {})".format, inner, st.sampled_from(["all", "transformList", "transformMap"]), inner),
        st.builds("has(({}).{})".format, inner, NAMES),
        st.builds("cel.bind(v, {}, {})".format, inner, inner),
        st.builds("({}).{}(v, {})".format, inner, st.sampled_from(["optMap", "optFlatMap"]), inner),
    )


EXPRESSIONS = st.recursive(st.one_of(NAMES, LITERALS, st.just(".a.b")), _larger, max_leaves=12)

_PIECES = st.sampled_from(
    [
        *("==", "!=", "in", "<", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*", "%"),
        *("true", "null", "1", "2u", "1.5", '"s"', "b'x'", "a", "x.y", "has", "if", "`q`", "all(", "#", "&", '"', "'"),
        *("\\", "\n", "//", "é", "\ud800", "\x00", "99999999999999999999", '"""', "r'", "T{", ".?", "[?", "0x"),
    ]
)
BROKEN = st.one_of(st.text(), st.lists(_PIECES, max_size=30).map(" ".join), st.lists(_PIECES, max_size=30).map("".join))


def tree(node: object) -> object:
    """The tree without ids, and with the types of literals."""
    if is_dataclass(node):
        return (type(node), *(tree(getattr(node, field.name)) for field in fields(node) if field.name != "id"))
    if isinstance(node, tuple):
        return tuple(map(tree, node))
    return (type(node), repr(node))


@given(EXPRESSIONS)
def test_the_text_of_a_tree_parses_to_the_same_tree(text: str) -> None:
    parsed = parse(text)
    assert tree(parse(expression_text(parsed.root, parsed)).root) == tree(parsed.root)


@given(BROKEN)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse(text)
    except CompileError as e:
        assert e.issues
        assert "not an expression" not in str(e)


@given(EXPRESSIONS, st.data())
def test_an_expression_with_a_piece_missing_is_parsed_or_refused(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 3)))
    try:
        parse(text[:start] + text[end:])
    except CompileError as e:
        assert "not an expression" not in str(e)


@given(EXPRESSIONS)
def test_spans_are_expressions_themselves(text: str) -> None:
    parsed = parse(text)
    for id in parsed.source.spans:
        if id in parsed.macro_calls:
            again = parse(parsed.source.snippet(id))
            assert expression_text(again.root, again)
