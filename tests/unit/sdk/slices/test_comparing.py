from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.sdk.slices.comparing import content, same, same_values

TAINT: Document = {"key": "k", "value": "v", "effect": "NoSchedule"}


def devices(*found: Document) -> Document:
    return {"devices": list(found)}


def one(**members: Any) -> Document:
    return devices({"name": "a", **members})


@pytest.mark.spec("DN-6.4c")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({}, {"devices": None}),
        ({}, {"devices": []}),
        ({}, {"sharedCounters": []}),
        ({}, {"allNodes": False, "perDeviceNodeSelection": None}),
        ({"nodeSelector": None}, {"nodeSelector": {}}),
        (one(), one(attributes={}, taints=None, capacity=None, consumesCounters=[])),
        (one(bindingConditions=[]), one()),
    ],
)
def test_null_and_empty_are_the_same(a: Document, b: Document) -> None:
    assert same(a, b) and same(b, a)


@pytest.mark.spec("DN-6.4c")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (one(capacity={"memory": {"value": "1024Mi"}}), one(capacity={"memory": {"value": "1Gi"}})),
        (one(capacity={"memory": {"value": 1000}}), one(capacity={"memory": {"value": "1k"}})),
        (
            one(capacity={"m": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}}}),
            one(capacity={"m": {"value": "4", "requestPolicy": {"default": "1000m", "validValues": ["1", "2000m"]}}}),
        ),
        (
            one(capacity={"m": {"value": "4", "requestPolicy": {"validRange": {"min": "1", "step": "1"}}}}),
            one(capacity={"m": {"value": "4", "requestPolicy": {"validRange": {"min": "1", "step": "1000m"}}}}),
        ),
        (
            one(consumesCounters=[{"counterSet": "s", "counters": {"c": {"value": "1000m"}}}]),
            one(consumesCounters=[{"counterSet": "s", "counters": {"c": {"value": "1"}}}]),
        ),
        (
            {"sharedCounters": [{"name": "s", "counters": {"c": {"value": "1024"}}}]},
            {"sharedCounters": [{"name": "s", "counters": {"c": {"value": "1Ki"}}}]},
        ),
        (
            one(nodeAllocatableResourceMappings={"cpu": {"capacityKey": "c"}}),
            one(nodeAllocatableResourceMappings={"cpu": {"capacityKey": "c", "allocationMultiplier": "1"}}),
        ),
    ],
)
def test_amounts_are_compared_by_value(a: Document, b: Document) -> None:
    assert same(a, b) and same(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (devices({"name": "a"}, {"name": "b"}), devices({"name": "b"}, {"name": "a"})),
        (devices({"name": "a"}), devices({"name": "a"}, {"name": "b"})),
        (one(attributes={"x": {"string": "1"}}), one(attributes={"x": {"string": "1.0"}})),
        (one(attributes={"capacity": {"string": "1"}}), one(attributes={"capacity": {"string": "1000m"}})),
        (one(attributes={"x": {"string": ""}}), one()),
        (one(attributes={"x": {"int": 0}}), one()),
        (one(attributes={"x": {"bool": False}}), one(attributes={"x": {"bool": True}})),
        (one(attributes={"x": {"int": 1}}), one(attributes={"x": {"int": 2}})),
        (one(capacity={"m": {"value": "1Gi"}}), one(capacity={"m": {"value": "1G"}})),
        (one(capacity={"m": {"value": "no amount"}}), one(capacity={"m": {"value": "1"}})),
        (one(taints=[TAINT]), one()),
        (one(taints=[TAINT]), one(taints=[{**TAINT, "value": ""}])),
        (one(allowMultipleAllocations=True), one()),
        ({"allNodes": True}, {}),
        ({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [1]}]}}, {}),
        ({"perDeviceNodeSelection": True}, {}),
        ({"sharedCounters": [{"name": "s", "counters": {"c": {"value": "1"}}}]}, {}),
    ],
)
def test_what_means_something_else_differs(a: Document, b: Document) -> None:
    assert not same(a, b) and not same(b, a)


@pytest.mark.spec("DN-6.4c")
@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (None, "2026-01-01T00:00:00Z", True),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", True),
        ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z", True),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z", False),
        ("yesterday", "2026-01-01T00:00:02Z", False),
    ],
)
def test_times_of_taints_may_be_missing_or_differ_by_a_second(a: str | None, b: str, equal: bool) -> None:
    mine, theirs = one(taints=[{**TAINT, "timeAdded": a}]), one(taints=[{**TAINT, "timeAdded": b}])
    assert same(mine, theirs) is equal and same(theirs, mine) is equal


def test_a_taint_without_a_value_has_an_empty_one() -> None:
    assert same(one(taints=[{"key": "k", "effect": "None"}]), one(taints=[{"key": "k", "value": "", "effect": "None"}]))


def test_only_the_members_that_are_asked_for_are_compared() -> None:
    assert same({"allNodes": True}, {}, ["devices"])


def test_the_content_of_a_slice_is_what_its_driver_chose() -> None:
    spec: Document = {"driver": "d", "pool": {}, "nodeName": "n", "devices": [1], "allNodes": None}
    assert content(spec) == {"devices": [1]}


def test_values_are_compared_without_what_is_empty() -> None:
    assert same_values({"a": {"b": None}, "c": [{}]}, {"c": [{"d": []}]})
