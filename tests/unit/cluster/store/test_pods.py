from datetime import UTC, datetime

import pytest

from devlet.cluster.client import DeleteOptions, Preconditions
from devlet.cluster.store import pods
from devlet.errors import BadRequest, Conflict, InvalidObject, TooManyRequests
from devlet.objects.documents import Document, copy

NOW = datetime(2025, 1, 1, tzinfo=UTC)
POD: Document = {
    "kind": "Pod",
    "metadata": {"name": "p", "uid": "u", "labels": {"a": "b"}},
    "spec": {"containers": []},
    "status": {
        "phase": "Pending",
        "nominatedNodeName": "n9",
        "conditions": [{"type": "PodScheduled", "status": "False"}],
    },
}
BINDING: Document = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}


def test_a_bound_pod_has_a_node_and_a_condition() -> None:
    before = copy(POD)
    bound = pods.bind(POD, {**BINDING, "metadata": {"name": "p", "labels": {"c": "d"}, "annotations": {"e": "f"}}}, NOW)
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["labels"] == {"a": "b", "c": "d"}
    assert bound["metadata"]["annotations"] == {"e": "f"}
    assert "nominatedNodeName" not in bound["status"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    assert bound["status"]["conditions"] == [{**scheduled, "lastTransitionTime": "2025-01-01T00:00:00Z"}]
    assert POD == before


@pytest.mark.parametrize(
    ("pod", "binding", "error"),
    [
        ({}, {"metadata": {"name": "q"}}, BadRequest),
        ({}, {"metadata": {"uid": "other"}}, Conflict),
        ({"spec": {"nodeName": "n2"}}, {}, Conflict),
        ({"metadata": {"name": "p", "uid": "u", "deletionTimestamp": "2025-01-01T00:00:00Z"}}, {}, Conflict),
        ({}, {"target": {}}, InvalidObject),
        ({}, {"target": None}, InvalidObject),
        ({}, {"target": {"kind": "Pod", "name": "x"}}, InvalidObject),
        ({}, {"target": "n1"}, BadRequest),
        ({}, {"target": {"name": ["n1"]}}, BadRequest),
        ({}, {"metadata": {"labels": {"a": 1}}}, BadRequest),
    ],
)
def test_a_binding_that_cannot_be(pod: Document, binding: Document, error: type[Exception]) -> None:
    with pytest.raises(error):
        pods.bind({**POD, **pod}, {**BINDING, **binding}, NOW)


def test_a_binding_without_a_name_is_for_the_pod_that_was_addressed() -> None:
    assert pods.bind(POD, {"target": {"name": "n1"}}, NOW)["spec"]["nodeName"] == "n1"


def test_an_eviction_is_a_deletion() -> None:
    body = {"deleteOptions": {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}, "dryRun": ["All"]}}
    assert pods.eviction_options(POD, body) == DeleteOptions(5, None, Preconditions("u"), True)
    assert pods.eviction_options(POD, {}) == DeleteOptions()
    with pytest.raises(BadRequest):
        pods.eviction_options(POD, {"deleteOptions": {"gracePeriodSeconds": "soon"}})


@pytest.mark.parametrize("field", ["name", "namespace"])
def test_an_eviction_or_binding_that_names_another_pod_is_refused(field: str) -> None:
    pod = {**POD, "metadata": {**POD["metadata"], "namespace": "default"}}
    own, other = {field: pod["metadata"][field]}, {field: "other"}
    assert pods.eviction_options(pod, {"metadata": own}) == DeleteOptions()
    assert pods.bind(pod, {**BINDING, "metadata": own}, NOW)["spec"]["nodeName"] == "n1"
    with pytest.raises(BadRequest, match="does not match"):
        pods.eviction_options(pod, {"metadata": other})
    with pytest.raises(BadRequest, match="does not match"):
        pods.bind(pod, {**BINDING, "metadata": other}, NOW)


def test_an_evicted_pod_says_why() -> None:
    evicted = pods.mark_evicted(pods.mark_evicted(POD, NOW), NOW)
    conditions = [c for c in evicted["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert [c["reason"] for c in conditions] == ["EvictionByEvictionAPI"]
    assert "DisruptionTarget" not in str(POD)


def budget(allowed: int, **labels: str) -> Document:
    return {
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }


def test_a_budget_that_is_used_up_protects_the_pods_it_selects() -> None:
    running = {"metadata": {"name": "p", "labels": {"app": "a"}}, "status": {"phase": "Running"}}
    pods.check_budgets(running, [budget(1, app="a"), budget(0, app="b")])
    with pytest.raises(TooManyRequests, match="disruption budget b does not allow it now"):
        pods.check_budgets(running, [budget(0, app="a")])
    pods.check_budgets({**running, "status": {"phase": "Failed"}}, [budget(0, app="a")])
