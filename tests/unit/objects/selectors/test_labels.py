"""Label selectors. Texts and errors were checked against Kubernetes v1.36."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import BadRequest, InvalidInput
from devlet.objects.selectors.labels import (
    EVERYTHING,
    MAX_TEXT,
    NOTHING,
    Requirement,
    from_document,
    from_labels,
    parse,
)

MATCHES = [
    ("", {}, True),
    ("a", {"a": ""}, True),
    ("a", {}, False),
    ("!a", {}, True),
    ("! a", {"a": "x"}, False),
    ("a=x", {"a": "x"}, True),
    ("a=x", {}, False),
    ("a==x", {"a": "y"}, False),
    ("a=", {"a": ""}, True),
    ("a=", {}, False),
    ("a!=x", {"a": "y"}, True),
    ("a!=x", {}, True),
    ("a!=x", {"a": "x"}, False),
    ("a in (x,y)", {"a": "y"}, True),
    ("a in (x,y)", {}, False),
    ("a in ()", {"a": ""}, True),
    ("a in (,x)", {"a": ""}, True),
    ("a notin (x,y)", {}, True),
    ("a notin (x,y)", {"a": "x"}, False),
    ("a>5", {"a": "6"}, True),
    ("a > 5", {"a": "5"}, False),
    ("a<5", {"a": "-1"}, True),
    ("a<5", {"a": "many"}, False),
    ("a>5", {"a": "9223372036854775808"}, False),
    ("a>5", {}, False),
    ("a=x,b!=y", {"a": "x"}, True),
    ("a=x,b!=y", {"a": "x", "b": "y"}, False),
    ("in in (in),notin", {"in": "in", "notin": ""}, True),
    ("example.com/role=gpu", {"example.com/role": "gpu"}, True),
]

CANONICAL = {
    "b=1,a=2": "a=2,b=1",
    " a  ==  x ": "a==x",
    "a in (y, x,x)": "a in (x,y)",
    "a  notin(x)": "a notin (x)",
    "a in (,)": "a in ()",
    "!a": "!a",
    "a,b": "a,b",
    "a>5,a<9": "a>5,a<9",
    "a=": "a=",
    "": "",
    "  ": "",
}

REFUSED = {
    "=x": "found '=', expected: !, identifier, or 'end of string'",
    ",": "found ',', expected: !, identifier, or 'end of string'",
    "a,": "found '', expected: identifier after ','",
    "a=x,,b": "found ',', expected: identifier after ','",
    "a=x b": "found 'b', expected: ',' or 'end of string'",
    "!a=x": "found '=', expected: ',' or 'end of string'",
    "!": "unable to parse requirement: found '', expected: identifier",
    "!=x": "found '!=', expected: !, identifier, or 'end of string'",
    "a==!": "unable to parse requirement: found '!', expected: identifier",
    "a===x": "unable to parse requirement: found '=', expected: identifier",
    "a x": "unable to parse requirement: found 'x', expected: in, notin, =, ==, !=, gt, lt",
    "a in x": "unable to parse requirement: found 'x' expected: '('",
    "a in": "unable to parse requirement: found '' expected: '('",
    "a in (": "unable to parse requirement: found '', expected: ',', ')' or identifier",
    "a in (x": "unable to parse requirement: found '', expected: ',' or ')'",
    "a in (x y)": "unable to parse requirement: found 'y', expected: ',' or ')'",
    "a in (x,=)": "unable to parse requirement: found '=', expected: ',', or identifier",
    "a>x": 'unable to parse requirement: values[0]: Invalid value: "x": '
    "for 'Gt', 'Lt' operators, the value must be an integer",
}

keys = st.sampled_from(("a", "b", "in", "notin", "example.com/c"))
values = st.sampled_from(("", "x", "y", "5", "10", "in"))
labels = st.dictionaries(keys, values)
requirements = st.one_of(
    keys,
    keys.map("!{}".format),
    st.tuples(keys, st.sampled_from(("=", "==", "!=")), values).map("".join),
    st.tuples(keys, st.sampled_from(("in", "notin")), st.lists(values, min_size=1)).map(
        lambda t: f"{t[0]} {t[1]} ({','.join(t[2])})"
    ),
    st.tuples(keys, st.sampled_from("<>"), st.integers(0, 20).map(str)).map("".join),
)
selectors = st.lists(requirements, max_size=4).map(",".join)


@pytest.mark.spec("KA-4.2")
@pytest.mark.parametrize(("text", "labels", "expected"), MATCHES)
def test_selects(text: str, labels: dict[str, str], expected: bool) -> None:
    assert parse(text).matches(labels) is expected


@pytest.mark.spec("KA-4.2")
@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_prints_itself_in_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.spec("KA-4.2")
@pytest.mark.parametrize(("text", "error"), REFUSED.items())
def test_says_what_was_found_and_what_was_expected(text: str, error: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse(text)
    assert str(caught.value) == error


@pytest.mark.spec("KA-4.2")
@pytest.mark.parametrize("text", ["a/b/c=x", "a=-x", f"a={'x' * 64}", f"{'a' * 64}", "a in (x_)", "a>-5", "ä"])
def test_keys_and_values_must_be_valid(text: str) -> None:
    with pytest.raises(BadRequest, match=r"unable to parse requirement: .*Invalid value"):
        parse(text)


def test_several_errors_are_listed() -> None:
    with pytest.raises(BadRequest, match=r"requirement: \[values\[0\]: .*, values\[0\]\[a\]: .*\]"):
        parse("a>x_")


def test_a_selector_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadRequest, match="at most"):
        parse("a" * (MAX_TEXT + 1))


@pytest.mark.spec("KA-4.2")
def test_an_empty_selector_selects_everything_and_a_missing_document_nothing() -> None:
    assert parse("") == from_document({}) == EVERYTHING
    assert EVERYTHING.matches({"a": "x"})
    assert EVERYTHING.matches(None)
    assert EVERYTHING.selects_everything
    assert from_document(None) == NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.selects_everything


def test_a_document_means_all_of_its_labels_and_expressions() -> None:
    selector = from_document(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "zone", "operator": "NotIn", "values": ["z"]},
                {"key": "ready", "operator": "Exists"},
                {"key": "gone", "operator": "DoesNotExist", "values": []},
            ],
        }
    )
    assert str(selector) == "app=web,!gone,ready,tier in (back,front),zone notin (z)"
    assert selector.matches({"app": "web", "tier": "back", "ready": ""})
    assert not selector.matches({"app": "web", "tier": "back", "ready": "", "gone": ""})


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ([], "spec.selector: Invalid value: must be an object"),
        ({"matchLabels": []}, None),
        ({"matchLabels": [1]}, "spec.selector.matchLabels: Invalid value: must be an object"),
        ({"matchLabels": {"a": 1}}, r"spec.selector.matchLabels\[a\]: Invalid value: must be a string"),
        ({"matchLabels": {"a": "_"}}, r"spec.selector.matchLabels.values\[0\]\[a\]: Invalid value: \"_\""),
        ({"matchExpressions": {"a": 1}}, "spec.selector.matchExpressions: Invalid value: must be a list"),
        ({"matchExpressions": ["a"]}, r"matchExpressions\[0\]: Invalid value: must be an object"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            'operator: Unsupported value: "Gt": supported values: "In", "NotIn", "Exists", "DoesNotExist"',
        ),
        ({"matchExpressions": [{"key": "a", "operator": ["In"]}]}, "Unsupported value"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, r"values: Invalid value: \[\]: for 'in'"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}, r"values\[0\].* must be a string"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}, "must be empty"),
        ({"matchExpressions": [{"key": 1, "operator": "Exists"}]}, "key: Invalid value: must be a string"),
        ({"matchExpressions": [{"operator": "Exists"}]}, 'key: Invalid value: "": name part must be non-empty'),
    ],
)
def test_errors_in_a_document_name_their_place(document: Any, error: str | None) -> None:
    if error is None:
        assert from_document(document, "spec.selector") == EVERYTHING
        return
    with pytest.raises(InvalidInput, match=error):
        from_document(document, "spec.selector")


def test_labels_become_a_selector() -> None:
    selector = from_labels({"b": "2", "a": "1"})
    assert str(selector) == "a=1,b=2"
    assert selector.requirements[0] == Requirement("a", "=", ("1",))


@given(selectors, labels)
def test_the_canonical_text_selects_the_same(text: str, labels: dict[str, str]) -> None:
    selector = parse(text)
    assert parse(str(selector)) == selector
    assert parse(str(selector)).matches(labels) == selector.matches(labels)


@given(st.lists(requirements, max_size=4), labels)
def test_a_selector_selects_what_each_requirement_selects(parts: list[str], labels: dict[str, str]) -> None:
    assert parse(",".join(parts)).matches(labels) == all(parse(part).matches(labels) for part in parts)


@given(keys, st.sets(values, min_size=1), labels)
def test_notin_is_the_opposite_of_in(key: str, listed: set[str], labels: dict[str, str]) -> None:
    within = ",".join(listed)
    assert parse(f"{key} in ({within})").matches(labels) != parse(f"{key} notin ({within})").matches(labels)


@given(st.text(max_size=20) | st.text("ab=!(),<> in5", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        selector = parse(text)
    except BadRequest as e:
        assert str(e)
    else:
        assert parse(str(selector)) == selector
