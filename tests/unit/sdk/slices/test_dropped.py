from typing import Any

import pytest

from devlet.errors import DevletError
from devlet.objects.documents import Document
from devlet.sdk.slices.dropped import dropped


def one(**members: Any) -> Document:
    return {"devices": [{"name": "a", **members}]}


TAINT: Document = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.spec("DN-10.P13")
@pytest.mark.parametrize(
    ("sent", "stored", "gates", "field"),
    [
        (one(taints=[TAINT]), one(), "DRADeviceTaints", "devices[].taints"),
        (one(consumesCounters=[{"counterSet": "s"}]), one(), "DRAPartitionableDevices", "devices[].consumesCounters"),
        ({"sharedCounters": [{"name": "s"}]}, {}, "DRAPartitionableDevices", "sharedCounters"),
        ({"perDeviceNodeSelection": True}, {}, "DRAPartitionableDevices", "perDeviceNodeSelection"),
        (one(bindingConditions=["a"]), one(), "DRADeviceBindingConditions", "devices[].bindingConditions"),
        (
            one(bindingFailureConditions=["a"]),
            one(),
            "DRADeviceBindingConditions",
            "devices[].bindingFailureConditions",
        ),
        (one(allowMultipleAllocations=True), one(), "DRAConsumableCapacity", "devices[].allowMultipleAllocations"),
        (
            one(attributes={"a": {"ints": [1]}}),
            one(attributes={"a": {}}),
            "DRAListTypeAttributes",
            "devices[].attributes",
        ),
        (
            one(nodeAllocatableResourceMappings={"cpu": {}}),
            one(),
            "DRANodeAllocatableResources",
            "devices[].nodeAllocatableResourceMappings",
        ),
        (one(future=1), one(), "unknown", "devices[].future"),
    ],
)
def test_a_dropped_field_is_reported_with_the_feature_that_it_needs(
    sent: Document, stored: Document, gates: str, field: str
) -> None:
    error = dropped("p", 3, sent, stored)
    assert isinstance(error, DevletError) and (error.pool, error.index, error.fields) == ("p", 3, (field,))
    assert str(error) == (
        'pool "p", slice #3: some fields were dropped by the apiserver, probably because these features are disabled: '
        f"{gates} ({field})"
    )


def test_several_features_may_be_missing() -> None:
    error = dropped("p", 0, one(taints=[TAINT], allowMultipleAllocations=True), one())
    assert error and error.gates == ("DRADeviceTaints", "DRAConsumableCapacity")


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (one(), one()),
        (one(taints=[TAINT]), one(taints=[{**TAINT, "timeAdded": "2026-01-01T00:00:00Z"}])),
        (one(capacity={"m": {"value": "1024Mi"}}), one(capacity={"m": {"value": "1Gi"}})),
        ({"devices": []}, {}),
        ({"nodeSelector": {"x": 1}}, {}),
    ],
)
def test_changes_that_servers_always_make_are_not_reported(sent: Document, stored: Document) -> None:
    assert dropped("p", 0, sent, stored) is None
