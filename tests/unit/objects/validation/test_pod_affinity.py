import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import pod_affinity
from devlet.objects.validation.field_errors import forbidden, invalid, required

REQUIRED, PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
TERM: Document = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}


def test_terms_are_accepted() -> None:
    more = {"namespaces": ["a"], "namespaceSelector": {}, "matchLabelKeys": ["version"]}
    affinity = {REQUIRED: [TERM, {**TERM, **more}], PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}
    assert list(pod_affinity.check(affinity, "p")) == []


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"topologyKey": "a b"}, invalid("p.topologyKey", "a b", names.label_key("a b")[0])),
        ({"namespaces": ["A"]}, invalid("p.namespace", "A", names.dns_label("A")[0])),
        (
            {"labelSelector": {"matchLabels": {"a": "b c"}}},
            invalid("p.labelSelector.matchLabels", "b c", names.label_value("b c")[0]),
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            invalid("p.namespaceSelector.matchExpressions[0].operator", "Near", "not a valid selector operator"),
        ),
        (
            {"labelSelector": None, "matchLabelKeys": ["a"]},
            forbidden("p.matchLabelKeys", "must not be specified when labelSelector is not set"),
        ),
        ({"mismatchLabelKeys": ["a b"]}, invalid("p.mismatchLabelKeys[0]", "a b", names.label_key("a b")[0])),
    ],
)
def test_errors_in_a_term_are_named(change: Document, cause: Cause) -> None:
    found = list(pod_affinity.check({REQUIRED: [{**TERM, **change}]}, "p"))
    assert [(each.field.replace(f".{REQUIRED}[0]", ""), each.message) for each in found] == [
        (cause.field, cause.message)
    ]


def test_a_term_needs_a_topology_key() -> None:
    first, *_ = pod_affinity.check({REQUIRED: [{}]}, "p")
    assert first == required(f"p.{REQUIRED}[0].topologyKey", "can not be empty")


def test_a_preference_has_a_weight() -> None:
    found = list(pod_affinity.check({PREFERRED: [{"weight": 101, "podAffinityTerm": TERM}]}, "p"))
    assert found == [invalid(f"p.{PREFERRED}[0].weight", 101, "must be in the range 1-100")]
