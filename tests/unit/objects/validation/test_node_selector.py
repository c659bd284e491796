import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import node_selector
from devlet.objects.validation.field_errors import forbidden, invalid, required, too_many

P = "s.nodeSelectorTerms"


def selector(**requirement: object) -> Document:
    return {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}


def fields(**requirement: object) -> Document:
    return {"nodeSelectorTerms": [{"matchFields": [requirement]}]}


E, F = f"{P}[0].matchExpressions[0]", f"{P}[0].matchFields[0]"


@pytest.mark.parametrize(
    "document",
    [
        selector(key="a.io/zone", operator="In", values=["x", "y"]),
        selector(key="a", operator="Exists"),
        selector(key="a", operator="Gt", values=["5"]),
        fields(key="metadata.name", operator="In", values=["node-1.example.com"]),
        {"nodeSelectorTerms": [{}]},
    ],
)
def test_a_good_selector_is_accepted(document: Document) -> None:
    assert list(node_selector.check_single(document, "s")) == []


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        ({}, required(P, "must have at least one node selector term")),
        (
            selector(key="a", operator="In"),
            required(f"{E}.values", "must be specified when `operator` is 'In' or 'NotIn'"),
        ),
        (
            selector(key="a", operator="Exists", values=["x"]),
            forbidden(f"{E}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        ),
        (
            selector(key="a", operator="Lt", values=["1", "2"]),
            required(f"{E}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"),
        ),
        (selector(key="a", operator="Like"), invalid(f"{E}.operator", "Like", "not a valid selector operator")),
        (selector(key="a b", operator="Exists"), invalid(f"{E}.key", "a b", names.label_key("a b")[0])),
        (
            selector(key="a", operator="In", values=["-1"]),
            invalid(f"{E}.values[0]", "-1", names.label_value("-1")[0]),
        ),
        (
            fields(key="spec.x", operator="In", values=["x"]),
            invalid(f"{F}.key", "spec.x", "not a valid field selector key"),
        ),
        (
            fields(key="metadata.name", operator="Exists", values=["x"]),
            invalid(f"{F}.operator", "Exists", "not a valid selector operator"),
        ),
        (
            fields(key="metadata.name", operator="In", values=["x", "y"]),
            required(
                f"{F}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            ),
        ),
        (
            fields(key="metadata.name", operator="In", values=["X"]),
            invalid(f"{F}.values[0]", "X", names.dns_subdomain("X")[0]),
        ),
    ],
)
def test_a_bad_selector_is_refused(document: Document, cause: Cause) -> None:
    assert list(node_selector.check(document, "s")) == [cause]


@pytest.mark.parametrize("terms", [[{}, {}], []])
def test_devices_have_exactly_one_term(terms: list[Document]) -> None:
    causes = list(node_selector.check_single({"nodeSelectorTerms": terms}, "s"))
    assert causes[0] == invalid(P, terms or None, "must have exactly one node selector term")


def test_terms_and_requirements_are_limited() -> None:
    requirement = {"key": "a", "operator": "Exists"}
    most = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}] * (node_selector.PARTS_MAX // 2)}
    assert list(node_selector.check(most, "s")) == []
    one_term = {"nodeSelectorTerms": [{"matchExpressions": [requirement] * node_selector.PARTS_MAX}]}
    causes = [too_many(P, node_selector.PARTS_MAX + 1, node_selector.PARTS_MAX)]
    assert list(node_selector.check(one_term, "s")) == causes
