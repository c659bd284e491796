import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import label_selector
from devlet.objects.validation.field_errors import forbidden, invalid, required


def test_labels_and_expressions_are_accepted() -> None:
    expressions = [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "DoesNotExist"}]
    assert list(label_selector.check({"matchLabels": {"a": "b"}, "matchExpressions": expressions}, "s")) == []


@pytest.mark.parametrize(
    ("selector", "cause"),
    [
        ({"matchLabels": {"a": "b c"}}, invalid("s.matchLabels", "b c", names.label_value("b c")[0])),
        (
            {"matchExpressions": [{"key": "a", "operator": "NotIn"}]},
            required("s.matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'"),
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            forbidden(
                "s.matchExpressions[0].values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ),
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            invalid("s.matchExpressions[0].operator", "Gt", "not a valid selector operator"),
        ),
    ],
)
def test_errors_are_named(selector: Document, cause: Cause) -> None:
    assert list(label_selector.check(selector, "s")) == [cause]


def test_labels_of_nodes_can_be_compared_as_numbers() -> None:
    greater = {"key": "a", "operator": "Gt", "values": ["1"]}
    assert list(label_selector.check_expression(greater, "e", compares=True)) == []
    assert list(label_selector.check_expression({**greater, "values": []}, "e", compares=True)) == [
        required("e.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    ]
