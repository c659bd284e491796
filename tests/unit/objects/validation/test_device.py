from typing import Any

import pytest

from devlet.errors import Cause
from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation import device
from devlet.objects.validation.field_errors import forbidden, invalid, not_found, required, too_many

TAINT = {"key": "a.io/b", "effect": "NoExecute"}
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
ONE_NODE_FIELD = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)


def check(per_device: bool = False, old: Document | None = None, **members: Any) -> list[Cause]:
    return list(device.check({"name": "gpu-0", **members}, "d", set(), per_device, old))


def test_a_device_with_everything_is_accepted() -> None:
    policy = {"default": "1Gi", "validValues": ["1Gi"]}
    causes = check(
        per_device=True,
        attributes={"model": {"string": "x"}},
        capacity={"memory": {"value": "4Gi", "requestPolicy": policy}},
        consumesCounters=[{"counterSet": "c", "counters": {"m": {"value": "1"}}}],
        nodeSelector=SELECTOR,
        taints=[TAINT] * 16,
        bindsToNode=True,
        bindingConditions=["a"],
        bindingFailureConditions=["b"],
        allowMultipleAllocations=True,
        nodeAllocatableResourceMappings={"memory": {"capacityKey": "memory"}, "cpu": {"allocationMultiplier": "2"}},
    )
    assert causes == []


@pytest.mark.parametrize("name", ["", "A", "a.b", "a/b"])
def test_the_name_is_a_dns_label(name: str) -> None:
    assert check(name=name) == [invalid("d.name", name, names.dns_label(name)[0])]


@pytest.mark.spec("AL-2.20")
def test_attributes_and_capacity_have_32_entries_together() -> None:
    attributes = {f"a{i}": {"int": i} for i in range(31)}
    capacity = {"c0": {"value": "1"}, "c1": {"value": "1"}}
    assert check(attributes=attributes, capacity={"c0": {"value": "1"}}) == []
    assert check(attributes=attributes, capacity=capacity) == [
        invalid("d", 33, "the total number of attributes and capacities must not exceed 32")
    ]


@pytest.mark.spec("AL-2.20")
def test_attributes_have_48_values() -> None:
    attributes = {"a": {"int": 1}, "b": {"ints": list(range(47))}}
    assert check(attributes=attributes) == []
    assert check(attributes={**attributes, "c": {"bool": True}}) == [
        invalid("d", 49, "the total number of attribute values must not exceed 48")
    ]


@pytest.mark.spec("AL-2.20")
def test_far_too_many_attributes_break_both_limits() -> None:
    causes = check(attributes={f"a{i}": {"int": i} for i in range(49)})
    assert [cause.message.split(":")[1] for cause in causes] == [" 49", " 49"]


@pytest.mark.spec("AL-2.21")
@pytest.mark.parametrize("member", ["attributes", "capacity"])
def test_a_bad_key_is_reported_at_the_map(member: str) -> None:
    value = {"int": 1} if member == "attributes" else {"value": "1"}
    item = {"name": "gpu-0", member: {"a-b": value}}
    (cause,) = device.check(item, "d", set(), False, None)
    assert cause == invalid(f"d.{member}", "a-b", names.c_identifier("a-b")[0])


@pytest.mark.spec("AL-2.23")
def test_a_request_policy_needs_a_device_that_is_shared() -> None:
    capacity = {"memory": {"value": "4Gi", "requestPolicy": {"default": "1Gi"}}}
    expected = forbidden("d.capacity[memory].requestPolicy", "allowMultipleAllocations must be true")
    assert check(capacity=capacity) == check(capacity=capacity, allowMultipleAllocations=False) == [expected]
    assert check(capacity=capacity, allowMultipleAllocations=True) == []


@pytest.mark.spec("AL-2.24")
def test_a_device_has_at_most_16_taints() -> None:
    assert check(taints=[TAINT] * 17) == [too_many("d.taints", 17, 16)]
    assert check(taints=[{"key": "k"}]) == [required("d.taints[0].effect")]


@pytest.mark.spec("AL-2.24")
def test_unchanged_taints_are_not_checked_again() -> None:
    taints = [{"key": "k"}]
    assert check(taints=taints, old={"taints": taints}) == []
    assert check(taints=taints, old={"taints": []}) == [required("d.taints[0].effect")]


@pytest.mark.spec("AL-2.25")
@pytest.mark.parametrize(
    ("members", "causes"),
    [
        ({}, [required("d", ONE_NODE_FIELD)]),
        ({"nodeName": "n", "allNodes": True}, [invalid("d", "{`nodeName`, `allNodes`}", ONE_NODE_FIELD)]),
        (
            {"nodeName": ""},
            [invalid("d.nodeName", "", "must not be empty"), required("d", ONE_NODE_FIELD)],
        ),
        ({"nodeName": "A"}, [invalid("d.nodeName", "A", names.dns_subdomain("A")[0])]),
        (
            {"allNodes": False},
            [invalid("d.allNodes", False, "must be either unset or set to true"), required("d", ONE_NODE_FIELD)],
        ),
    ],
)
def test_a_device_selects_its_nodes_in_one_way(members: Document, causes: list[Cause]) -> None:
    assert check(per_device=True, **members) == causes


@pytest.mark.spec("AL-2.25")
@pytest.mark.parametrize("members", [{"nodeName": "n"}, {"nodeSelector": SELECTOR}, {"allNodes": True}])
def test_node_fields_of_a_device_need_the_slice_to_say_so(members: Document) -> None:
    (cause,) = check(**members)
    assert cause == invalid(
        "d",
        None,
        "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
        "ResourceSlice spec",
    )
    assert check(per_device=True, **members) == []


@pytest.mark.spec("AL-2-gap.4")
def test_a_node_selector_with_several_terms_is_refused() -> None:
    terms = SELECTOR["nodeSelectorTerms"] * 2
    (cause,) = check(per_device=True, nodeSelector={"nodeSelectorTerms": terms})
    assert cause == invalid("d.nodeSelector.nodeSelectorTerms", terms, "must have exactly one node selector term")


M = "d.nodeAllocatableResourceMappings"


@pytest.mark.parametrize(
    ("name", "mapping", "cause"),
    [
        ("x", {"allocationMultiplier": "1"}, invalid(f"{M}[x]", "x", "must be a node allocatable resource name")),
        ("cpu", {}, invalid(f"{M}[cpu]", "", "at least one of allocationMultiplier or capacityKey must be set")),
        ("cpu", {"allocationMultiplier": "0"}, invalid(f"{M}[cpu].allocationMultiplier", "0", "must be positive")),
        ("cpu", {"capacityKey": ""}, invalid(f"{M}[cpu].capacityKey", "", "capacityKey must not be an empty string")),
        ("cpu", {"capacityKey": "none"}, not_found(f"{M}[cpu].capacityKey", "none")),
    ],
)
def test_a_bad_mapping_to_node_resources_is_refused(name: str, mapping: Document, cause: Cause) -> None:
    assert check(nodeAllocatableResourceMappings={name: mapping}) == [cause]


@pytest.mark.parametrize(
    ("members", "advanced"),
    [
        ({}, False),
        ({"attributes": {"a": {"int": 1}}, "taints": []}, False),
        ({"taints": [TAINT]}, True),
        ({"consumesCounters": [{}]}, True),
        ({"attributes": {"a": {"int": 1}, "b": {"strings": ["x"]}}}, True),
    ],
)
def test_some_features_make_a_device_advanced(members: Document, advanced: bool) -> None:
    assert device.is_advanced(members) is advanced
