"""Defaults of resource.k8s.io."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from devlet.objects.defaults.resource import (
    default_claim,
    default_pool_status_request,
    default_slice,
    default_taint_rule,
    default_template,
)
from devlet.objects.documents import Document, copy

NOW = datetime(2026, 1, 2, 3, 4, 5, 999999, tzinfo=UTC)
NOW_TEXT = "2026-01-02T03:04:05Z"


def claim(*requests: Document, **status: Any) -> Document:
    return {"spec": {"devices": {"requests": [*requests]}}, "status": status}


@pytest.mark.spec("AL-1.6")
@pytest.mark.spec("KA-7.2")
@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({}, {"allocationMode": "ExactCount", "count": 1}),
        ({"count": 0}, {"allocationMode": "ExactCount", "count": 1}),
        ({"count": 3}, {"allocationMode": "ExactCount", "count": 3}),
        ({"allocationMode": "All"}, {"allocationMode": "All"}),
        ({"allocationMode": "Odd"}, {"allocationMode": "Odd"}),
        (
            {"allocationMode": "All", "tolerations": [{"key": "k"}, {"operator": "Exists"}]},
            {"allocationMode": "All", "tolerations": [{"key": "k", "operator": "Equal"}, {"operator": "Exists"}]},
        ),
    ],
)
def test_a_request_asks_for_exactly_one_device_unless_it_says_more(request_: Document, expected: Document) -> None:
    document = claim({"exactly": copy(request_)}, {"firstAvailable": [copy(request_)]})
    template = {"spec": {"spec": copy(document["spec"])}}
    default_claim(document)
    default_template(template)
    for spec in (document["spec"], template["spec"]["spec"]):
        assert spec["devices"]["requests"] == [{"exactly": expected}, {"firstAvailable": [expected]}]


@pytest.mark.spec("KA-7.2")
def test_a_claim_has_a_status_and_a_template_has_metadata_for_its_claims() -> None:
    document: Document = {"spec": {"devices": {}}}
    default_claim(document)
    assert document == {"spec": {"devices": {}}, "status": {}}
    template: Document = {"spec": {}}
    default_template(template)
    assert template == {"spec": {"metadata": {}, "spec": {}}}


@pytest.mark.spec("AL-1.6")
def test_tolerations_of_an_allocation_get_an_operator() -> None:
    document = claim(allocation={"devices": {"results": [{"tolerations": [{"key": "k"}]}]}})
    default_claim(document)
    results = document["status"]["allocation"]["devices"]["results"]
    assert results == [{"tolerations": [{"key": "k", "operator": "Equal"}]}]


@pytest.mark.spec("AL-1.6")
@pytest.mark.spec("KA-7.2")
def test_a_device_taint_counts_from_now_in_whole_seconds_unless_it_says_since_when() -> None:
    taints = [{"key": "a", "effect": "None"}, {"key": "b", "timeAdded": "2025-01-01T00:00:00Z"}]
    document = {"spec": {"devices": [{"name": "d", "taints": taints}, {"name": "e"}]}}
    default_slice(document, NOW.astimezone(timezone(timedelta(hours=2))))
    assert [taint["timeAdded"] for taint in taints] == [NOW_TEXT, "2025-01-01T00:00:00Z"]
    assert document["spec"]["devices"][1] == {"name": "e"}


@pytest.mark.spec("AL-1.6")
@pytest.mark.spec("KA-7.2")
def test_the_multiplier_of_a_mapping_stays_unset_because_drivers_would_complain() -> None:
    mappings: Document = {"cpu": {"capacityKey": "cores"}, "memory": {"allocationMultiplier": "2"}}
    default_slice({"spec": {"devices": [{"nodeAllocatableResourceMappings": mappings}]}}, NOW)
    assert mappings == {"cpu": {"capacityKey": "cores"}, "memory": {"allocationMultiplier": "2"}}


def rule(effect: str, time_added: str | None = None) -> Document:
    return {"spec": {"taint": {"key": "k", "effect": effect} | ({"timeAdded": time_added} if time_added else {})}}


@pytest.mark.spec("AL-1.6")
@pytest.mark.spec("KA-7.2")
@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (rule("None"), None, NOW_TEXT),
        (rule("None", "2025-01-01T00:00:00Z"), None, "2025-01-01T00:00:00Z"),
        (rule("None", "2025-01-01T00:00:00Z"), rule("None", "2025-01-01T00:00:00Z"), "2025-01-01T00:00:00Z"),
        (rule("NoExecute", "2025-01-01T00:00:00Z"), rule("None", "2025-01-01T00:00:00Z"), NOW_TEXT),
        (rule("NoExecute", "2025-06-01T00:00:00Z"), rule("None", "2025-01-01T00:00:00Z"), "2025-06-01T00:00:00Z"),
        (rule("NoExecute"), rule("None", "2025-01-01T00:00:00Z"), NOW_TEXT),
    ],
)
def test_a_rule_whose_effect_changes_counts_from_now(new: Document, old: Document | None, expected: str) -> None:
    default_taint_rule(new, NOW, old)
    assert new["spec"]["taint"]["timeAdded"] == expected


def test_a_rule_without_a_taint_is_left_to_validation() -> None:
    document: Document = {"spec": {}}
    default_taint_rule(document, NOW, None)
    assert document == {"spec": {}}


@pytest.mark.spec("AL-1.6")
@pytest.mark.parametrize(("spec", "limit"), [({}, 100), ({"limit": None}, 100), ({"limit": 0}, 0), ({"limit": 7}, 7)])
def test_a_pool_status_request_is_limited(spec: Document, limit: int) -> None:
    default_pool_status_request({"spec": spec})
    assert spec["limit"] == limit


@pytest.mark.parametrize("spec", [7, [], {"devices": 7}, {"devices": {"requests": [1, {"exactly": 1}]}}, {"taint": 1}])
def test_values_of_the_wrong_shape_are_left_to_validation(spec: Any) -> None:
    for apply in (default_claim, default_template, default_pool_status_request):
        document = {"spec": copy(spec)}
        apply(document)
        assert type(document["spec"]) is type(spec)
    document = {"spec": copy(spec)}
    default_slice(document, NOW)
    default_taint_rule(document, NOW, {"spec": 1})
    assert document == {"spec": spec}
