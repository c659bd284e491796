from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.selectors.nodes import NodeSelector, parse

NODE: Document = {"metadata": {"name": "worker-1", "labels": {"zone": "a", "gpus": "4", "empty": ""}}}


def expression(key: str, operator: str, *values: str) -> Document:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*expressions: Document, fields: tuple[Document, ...] = ()) -> Document:
    return {"matchExpressions": list(expressions), "matchFields": list(fields)}


def selector(*terms: Document) -> NodeSelector:
    return parse({"nodeSelectorTerms": list(terms)})


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (expression("zone", "In", "a", "b"), True),
        (expression("zone", "In", "b"), False),
        (expression("nope", "In", "a"), False),
        (expression("zone", "NotIn", "b"), True),
        (expression("nope", "NotIn", "b"), True),
        (expression("zone", "Exists"), True),
        (expression("empty", "Exists"), True),
        (expression("nope", "Exists"), False),
        (expression("nope", "DoesNotExist"), True),
        (expression("zone", "DoesNotExist"), False),
        (expression("gpus", "Gt", "3"), True),
        (expression("gpus", "Gt", "4"), False),
        (expression("gpus", "Lt", "5"), True),
        (expression("zone", "Lt", "5"), False),
        (expression("nope", "Gt", "0"), False),
    ],
)
def test_each_operator_on_labels(requirement: Document, expected: bool) -> None:
    assert selector(term(requirement)).matches(NODE) is expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (expression("metadata.name", "In", "worker-1"), True),
        (expression("metadata.name", "In", "worker-2"), False),
        (expression("metadata.name", "NotIn", "worker-1"), False),
        (expression("metadata.name", "NotIn", "worker-2"), True),
    ],
)
def test_the_name_can_be_selected_as_a_field(field: Document, expected: bool) -> None:
    assert selector(term(fields=(field,))).matches(NODE) is expected


def test_requirements_of_a_term_must_all_hold() -> None:
    here, there = expression("zone", "In", "a"), expression("zone", "In", "b")
    name = expression("metadata.name", "In", "worker-2")
    assert not selector(term(here, there)).matches(NODE)
    assert not selector(term(here, fields=(name,))).matches(NODE)


def test_terms_are_alternatives() -> None:
    here, there = expression("zone", "In", "a"), expression("zone", "In", "b")
    assert selector(term(there), term(here)).matches(NODE)
    assert not selector(term(there), term(there)).matches(NODE)


def test_an_empty_term_and_an_empty_selector_select_nothing() -> None:
    assert not selector(term()).matches(NODE)
    assert not selector({}).matches(NODE)
    assert not selector().matches(NODE)
    assert not parse({}).matches(NODE)
    assert selector(term(), term(expression("zone", "Exists"))).matches(NODE)


def test_a_node_without_labels_can_be_matched() -> None:
    assert selector(term(expression("zone", "DoesNotExist"))).matches({"metadata": {"name": "bare"}})
    assert selector(term(expression("zone", "DoesNotExist"))).matches_node("bare", {})


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (None, "spec.nodeSelector: Invalid value: must be an object"),
        ({"nodeSelectorTerms": {}}, "spec.nodeSelector.nodeSelectorTerms: Invalid value: must be a list"),
        ({"nodeSelectorTerms": ["a"]}, r"nodeSelectorTerms\[0\]: Invalid value: must be an object"),
        (
            {"nodeSelectorTerms": [term(expression("a", "Near"))]},
            r'nodeSelectorTerms\[0\].matchExpressions\[0\].operator: Unsupported value: "Near": supported values: '
            '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        ),
        (
            {"nodeSelectorTerms": [term(expression("a b", "Exists"))]},
            r"matchExpressions\[0\].key: Invalid value: \"a b\"",
        ),
        ({"nodeSelectorTerms": [term(expression("a", "Gt", "x"))]}, "the value must be an integer"),
        ({"nodeSelectorTerms": [term(expression("a", "Gt", "1", "2"))]}, "exactly one value is required"),
        (
            {"nodeSelectorTerms": [term(fields=(expression("spec.x", "In", "a"),))]},
            r'matchFields\[0\].key: Invalid value: "spec.x": not a valid field selector key',
        ),
        (
            {"nodeSelectorTerms": [term(fields=(expression("metadata.name", "Exists"),))]},
            'operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
        ),
        (
            {"nodeSelectorTerms": [term(fields=(expression("metadata.name", "In", "a", "b"),))]},
            "values: Invalid value: must have one element",
        ),
    ],
)
def test_errors_name_their_place(document: Any, error: str) -> None:
    with pytest.raises(InvalidInput, match=error):
        parse(document, "spec.nodeSelector")


requirements = st.builds(
    lambda key, operator, value: expression(
        key, operator, *([] if operator in ("Exists", "DoesNotExist") else [value])
    ),
    st.sampled_from(("zone", "gpus", "nope")),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
    st.sampled_from(("1", "4", "9")),
)


@given(st.lists(st.lists(requirements, max_size=3), max_size=3))
def test_a_selector_is_any_of_terms_that_are_all_of_requirements(terms: list[list[Document]]) -> None:
    expected = any(each and all(selector(term(one)).matches(NODE) for one in each) for each in terms)
    assert selector(*(term(*each) for each in terms)).matches(NODE) is bool(expected)
