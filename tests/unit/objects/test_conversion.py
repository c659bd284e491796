"""Conversion between API versions: the shapes that differ, and that nothing is lost on the way."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects import kinds
from devlet.objects.conversion import convert, convert_path, warning_for
from devlet.objects.documents import Document, copy
from devlet.objects.kinds import BUILT_IN, Resource
from devlet.objects.schema.messages import message_of
from devlet.objects.schema.shape import conform

V1, V1BETA2, V1BETA1, V1ALPHA3 = (f"resource.k8s.io/{v}" for v in ("v1", "v1beta2", "v1beta1", "v1alpha3"))
EVENTS = "events.k8s.io/v1"
SERVED_IN_SEVERAL = {kind.kind: kind for kind in BUILT_IN if len(kind.api_versions) > 1}
VECTORS = [
    vector["json"]
    for vector in json.loads((Path(__file__).parents[2] / "vectors/kube_protobuf.json").read_text())["vectors"]
    if vector["kind"].removesuffix("List") in SERVED_IN_SEVERAL
    and vector["apiVersion"] in SERVED_IN_SEVERAL[vector["kind"].removesuffix("List")].api_versions
]


def claim(api_version: str, *requests: Document) -> Document:
    return {"apiVersion": api_version, "kind": "ResourceClaim", "spec": {"devices": {"requests": [*requests]}}}


def requests_of(document: Document) -> list[Any]:
    found: list[Any] = document["spec"]["devices"]["requests"]
    return found


def slice_(api_version: str, *devices: Document, **spec: Any) -> Document:
    return {"apiVersion": api_version, "kind": "ResourceSlice", "spec": {**spec, "devices": [*devices]}}


# Documents with keys that no schema knows, at every level.

STRANGE: st.SearchStrategy[Any] = st.none() | st.integers() | st.text(max_size=3) | st.just({"deep": [1, {"x": None}]})
STRANGERS = st.dictionaries(st.sampled_from(["x", "xNew", "x.example.com/y", ""]), STRANGE, max_size=2)


def objects(required: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[Document]:
    known = st.fixed_dictionaries(required, optional=optional or {})
    return st.builds(lambda fields, strangers: strangers | fields, known, STRANGERS)


def lists(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=3)


REQUEST_FIELDS = {
    "selectors": lists(objects({"cel": objects({"expression": st.just("true")})})),
    "allocationMode": st.sampled_from(["ExactCount", "All"]),
    "count": st.integers(1, 3),
    "adminAccess": st.booleans(),
    "tolerations": lists(objects({"key": st.just("k")})),
    "capacity": objects({"requests": st.just({"memory": "1Gi"})}),
}
CLASS_NAME = st.sampled_from(["", "gpu.example.com"])
SUBREQUESTS = lists(objects({"name": st.just("sub"), "deviceClassName": CLASS_NAME}, REQUEST_FIELDS))
EXACTLY = objects({}, REQUEST_FIELDS | {"deviceClassName": CLASS_NAME, "count": st.integers(0, 3)})
V1_REQUESTS = objects({"name": st.just("r")}, {"exactly": EXACTLY, "firstAvailable": SUBREQUESTS})
V1BETA1_REQUESTS = objects(
    {"name": st.just("r"), "deviceClassName": CLASS_NAME}, REQUEST_FIELDS | {"firstAvailable": SUBREQUESTS}
)
DEVICE_FIELDS = {
    "attributes": st.just({"model": {"string": "A", "x": 1}}),
    "capacity": st.just({"memory": {"value": "1Gi", "x": 1}}),
    "consumesCounters": lists(objects({"counterSet": st.just("c")})),
    "nodeName": st.sampled_from(["", "n1"]),
    "nodeSelector": objects({}),
    "allNodes": st.booleans(),
    "taints": lists(objects({"key": st.just("k"), "effect": st.just("None")})),
    "bindsToNode": st.booleans(),
    "bindingConditions": st.just(["a"]),
    "bindingFailureConditions": st.just(["b"]),
    "allowMultipleAllocations": st.booleans(),
    "nodeAllocatableResourceMappings": st.just({"cpu": {"capacityKey": "x"}}),
}
V1_DEVICES = objects({"name": st.just("d")}, DEVICE_FIELDS)
V1BETA1_DEVICES = objects({"name": st.just("d"), "basic": objects({}, DEVICE_FIELDS)})
PLACES = {"nodeName": st.just("n1"), "allNodes": st.just(True), "perDeviceNodeSelection": st.booleans()}
EVENT_FIELDS = ["involvedObject", "message", "source", "count", "reason", "regarding", "note", "deprecatedCount", "x"]


def claim_specs(requests: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return objects({}, {"devices": objects({}, {"requests": lists(requests | st.none()) | st.none()})})


def slice_specs(devices: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return objects({"driver": st.just("d")}, PLACES | {"devices": lists(devices) | st.none()})


def documents(kind: str, api_version: str, spec: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    typed = {"kind": st.just(kind), "apiVersion": st.just(api_version)}
    return objects(typed, {"metadata": objects({}), "spec": spec, "status": objects({})})


V1_DOCUMENTS = (
    documents("ResourceClaim", V1, claim_specs(V1_REQUESTS))
    | documents("ResourceClaimTemplate", V1, objects({"spec": claim_specs(V1_REQUESTS)}))
    | documents("ResourceSlice", V1, slice_specs(V1_DEVICES))
    | documents("DeviceClass", V1, objects({}))
)
V1BETA1_DOCUMENTS = (
    documents("ResourceClaim", V1BETA1, claim_specs(V1BETA1_REQUESTS))
    | documents("ResourceClaimTemplate", V1BETA1, objects({"spec": claim_specs(V1BETA1_REQUESTS)}))
    | documents("ResourceSlice", V1BETA1, slice_specs(V1BETA1_DEVICES))
    | documents("DeviceClass", V1BETA1, objects({}))
)


def comes_back(document: Document, by: str) -> None:
    before = copy(document)
    there = convert(document, by)
    assert there["apiVersion"] == by
    assert convert(there, document["apiVersion"]) == before
    assert document == before, "the input was changed"


@settings(deadline=None)
@given(V1_DOCUMENTS, st.sampled_from([V1BETA1, V1BETA2]))
def test_a_v1_object_comes_back_from_an_older_version_as_it_was(document: Document, by: str) -> None:
    comes_back(document, by)


@settings(deadline=None)
@given(V1BETA1_DOCUMENTS, st.sampled_from([V1, V1BETA2]))
def test_a_v1beta1_object_comes_back_from_a_newer_version_as_it_was(document: Document, by: str) -> None:
    comes_back(document, by)


@pytest.mark.spec("KA-A1")
@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(EVENT_FIELDS), STRANGE), st.sampled_from([("v1", EVENTS), (EVENTS, "v1")]))
def test_an_event_comes_back_even_with_keys_of_the_other_shape(fields: Document, versions: tuple[str, str]) -> None:
    comes_back({"kind": "Event", "apiVersion": versions[0], **fields}, versions[1])


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["spec", "devices", "requests", "exactly", "basic", "items", "nodeName", "count"]), inner
        )
    ),
)


@settings(deadline=None)
@given(JSON, st.sampled_from(["ResourceClaim", "ResourceSlice", "ResourceClaimTemplate", "ResourceSliceList"]))
def test_values_of_the_wrong_shape_pass_through_and_nothing_is_changed_in_place(spec: Any, kind: str) -> None:
    for there, back in itertools.permutations((V1, V1BETA1), 2):
        document = {"kind": kind, "apiVersion": back, "spec": spec, "items": spec}
        before = copy(document)
        assert convert(document, there)["apiVersion"] == there
        assert document == before


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['apiVersion']}/{v['kind']}")
def test_every_version_of_a_sample_has_only_fields_its_schema_knows(vector: Document) -> None:
    kind = SERVED_IN_SEVERAL[vector["kind"].removesuffix("List")]
    for api_version in kind.api_versions:
        shown = convert(vector, api_version)
        message = message_of(api_version, vector["kind"])
        assert message is not None
        assert conform(shown, message).unknown == ()
        assert convert(shown, vector["apiVersion"]) == vector


def test_every_kind_is_convertible_between_all_versions_it_is_served_in() -> None:
    assert len(SERVED_IN_SEVERAL) == 6
    for kind in SERVED_IN_SEVERAL.values():
        for there, back in itertools.permutations(kind.api_versions, 2):
            assert convert({"kind": kind.kind, "apiVersion": back}, there) == {"kind": kind.kind, "apiVersion": there}


@pytest.mark.spec("AL-1.7-v1beta2")
def test_v1beta2_has_the_shape_of_v1() -> None:
    document = claim(V1BETA2, {"name": "r", "exactly": {"deviceClassName": "c"}})
    assert convert(document, V1) == {**document, "apiVersion": V1}
    assert convert(document, V1)["spec"] is document["spec"]


@pytest.mark.spec("AL-1.7-v1beta1-request")
@pytest.mark.parametrize(
    "fields",
    [
        {"deviceClassName": "c"},
        {"selectors": []},
        {"allocationMode": "All"},
        {"count": 2},
        {"adminAccess": False},
        {"tolerations": [{"key": "k"}]},
        {"capacity": {}},
        {"deviceClassName": "c", "count": 0},
    ],
)
def test_one_field_that_is_set_moves_all_of_them_under_exactly(fields: Document) -> None:
    old = claim(V1BETA1, {"name": "r", **fields})
    assert requests_of(convert(old, V1)) == [{"name": "r", "exactly": fields}]
    assert convert(convert(old, V1), V1BETA1) == old


@pytest.mark.spec("AL-1.7-v1beta1-request")
def test_a_request_with_alternatives_gets_no_exactly() -> None:
    alternatives = [{"name": "big", "deviceClassName": "c"}]
    old = claim(V1BETA1, {"name": "r", "deviceClassName": "", "count": 0, "firstAvailable": alternatives})
    assert requests_of(convert(old, V1)) == [{"name": "r", "firstAvailable": alternatives}]
    back = requests_of(convert(convert(old, V1), V1BETA1))
    assert back == [{"name": "r", "deviceClassName": "", "firstAvailable": alternatives}]


@pytest.mark.spec("AL-1.7-v1beta1-request")
def test_requests_of_a_template_are_converted_too() -> None:
    old = claim(V1BETA1, {"name": "r", "deviceClassName": "c"})
    template = {**old, "kind": "ResourceClaimTemplate", "spec": {"metadata": {}, "spec": old["spec"]}}
    assert requests_of(convert(template, V1)["spec"]) == [{"name": "r", "exactly": {"deviceClassName": "c"}}]


def test_unknown_keys_of_a_request_stay_at_their_level() -> None:
    new = claim(V1, {"name": "r", "x": 1, "exactly": {"deviceClassName": "c", "y": 2}})
    assert requests_of(convert(new, V1BETA1)) == [{"name": "r", "x": 1, "deviceClassName": "c", "exactly": {"y": 2}}]


def test_an_empty_exact_request_is_not_forgotten() -> None:
    comes_back(claim(V1, {"name": "r", "exactly": {}}), V1BETA1)


@pytest.mark.spec("AL-1.7-v1beta1-slice")
def test_an_empty_node_name_and_a_false_all_nodes_mean_unset_in_v1beta1() -> None:
    assert convert(slice_(V1BETA1, nodeName="", allNodes=False), V1) == slice_(V1)
    assert convert(slice_(V1BETA1, nodeName="n", allNodes=True), V1) == slice_(V1, nodeName="n", allNodes=True)
    assert convert(slice_(V1), V1BETA1) == slice_(V1BETA1)


@pytest.mark.spec("AL-1.7-v1beta1-device")
def test_a_device_is_nested_in_basic_which_is_always_written() -> None:
    attributes = {"model": {"string": "A"}}
    new = slice_(V1, {"name": "a", "attributes": attributes, "allNodes": False}, {"name": "b"})
    old = slice_(
        V1BETA1, {"name": "a", "basic": {"attributes": attributes, "allNodes": False}}, {"name": "b", "basic": {}}
    )
    assert convert(new, V1BETA1) == old
    assert convert(old, V1) == new
    assert convert(slice_(V1BETA1, {"name": "b", "basic": None}), V1) == slice_(V1, {"name": "b"})


def test_unknown_keys_of_a_device_stay_at_their_level() -> None:
    old = slice_(V1BETA1, {"name": "a", "x": 1, "basic": {"taints": [], "y": 2}})
    assert convert(old, V1) == slice_(V1, {"name": "a", "x": 1, "taints": [], "basic": {"y": 2}})


@pytest.mark.spec("AL-1.7-taintrule")
def test_a_taint_rule_has_one_shape_in_both_versions() -> None:
    rule = {"kind": "DeviceTaintRule", "apiVersion": V1ALPHA3, "spec": {"taint": {"key": "k"}}}
    assert convert(rule, V1BETA2) == {**rule, "apiVersion": V1BETA2}
    assert convert(convert(rule, V1BETA2), V1ALPHA3) == rule


@pytest.mark.spec("KA-A1")
def test_the_two_shapes_of_an_event() -> None:
    common = {
        "kind": "Event",
        "metadata": {"name": "e"},
        "reportingInstance": "i",
        "reason": "r",
        "type": "Normal",
        "action": "a",
        "related": {"kind": "Node"},
        "eventTime": None,
        "series": {"count": 2, "lastObservedTime": None},
    }
    core = common | {
        "apiVersion": "v1",
        "involvedObject": {"kind": "Pod"},
        "message": "m",
        "source": {"component": "c"},
        "firstTimestamp": "1",
        "lastTimestamp": "2",
        "count": 3,
        "reportingComponent": "rc",
    }
    new = common | {
        "apiVersion": EVENTS,
        "regarding": {"kind": "Pod"},
        "note": "m",
        "deprecatedSource": {"component": "c"},
        "deprecatedFirstTimestamp": "1",
        "deprecatedLastTimestamp": "2",
        "deprecatedCount": 3,
        "reportingController": "rc",
    }
    assert convert(core, EVENTS) == new
    assert convert(new, "v1") == core


def test_items_of_a_list_are_converted_with_and_without_a_type_of_their_own() -> None:
    item = slice_(V1, {"name": "a"})
    bare = {"spec": item["spec"]}
    listing = {
        "kind": "ResourceSliceList",
        "apiVersion": V1,
        "metadata": {"resourceVersion": "7"},
        "items": [item, bare],
    }
    shown = convert(listing, V1BETA1)
    assert shown["apiVersion"] == V1BETA1
    assert shown["metadata"] is listing["metadata"]
    assert shown["items"][0] == slice_(V1BETA1, {"name": "a", "basic": {}})
    assert shown["items"][1] == {"spec": {"devices": [{"name": "a", "basic": {}}]}}


def test_a_list_without_items_stays_without() -> None:
    assert convert({"kind": "EventList", "apiVersion": "v1"}, EVENTS) == {"kind": "EventList", "apiVersion": EVENTS}


def test_an_object_in_the_wanted_version_is_returned_itself() -> None:
    pod = {"kind": "Pod", "apiVersion": "v1"}
    assert convert(pod, "v1") is pod


@pytest.mark.parametrize(
    ("document", "to"),
    [
        ({"kind": "Pod", "apiVersion": "v1"}, "v2"),
        ({"kind": "DeviceTaintRule", "apiVersion": V1BETA2}, V1),
        ({"kind": "ResourceClaim", "apiVersion": V1}, V1ALPHA3),
        ({"kind": "List", "apiVersion": "v1"}, V1),
        ({"kind": "Event"}, "v1"),
        ({"apiVersion": "v1", "kind": 7}, "v1"),
    ],
)
def test_what_cannot_be_converted_is_refused(document: Document, to: str) -> None:
    with pytest.raises(BadRequest, match="cannot be converted"):
        convert(document, to)


@pytest.mark.spec("AL-1.7-paths")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("spec.devices.requests[0].deviceClassName", "spec.devices.requests[0].exactly.deviceClassName"),
        ("spec.devices.requests[3].selectors[1].cel", "spec.devices.requests[3].exactly.selectors[1].cel"),
        ("spec.spec.devices.requests[0].count", "spec.spec.devices.requests[0].exactly.count"),
        ("spec.devices.requests[0].name", "spec.devices.requests[0].name"),
        ("spec.devices.requests[0].firstAvailable[0].count", "spec.devices.requests[0].firstAvailable[0].count"),
        ("spec.devices.requests", "spec.devices.requests"),
        ("spec.devices[2].basic.attributes[a.b/c]", "spec.devices[2].attributes[a.b/c]"),
        ("spec.devices[2].name", "spec.devices[2].name"),
        ("status.devices[0].data", "status.devices[0].data"),
        ("metadata.name", "metadata.name"),
    ],
)
def test_error_paths_follow_their_field(old: str, new: str) -> None:
    for to in (V1, V1BETA2):
        assert convert_path(old, to) == new
        assert convert_path(new, to) == new
    assert convert_path(new, V1BETA1) == old
    assert convert_path(old, V1BETA1) == old


@pytest.mark.spec("AL-1.7-paths")
def test_error_paths_of_levels_that_the_other_version_lacks_point_to_what_holds_them() -> None:
    assert convert_path("spec.devices.requests[0].exactly", V1BETA1) == "spec.devices.requests[0]"
    assert convert_path("spec.devices[0].basic", V1) == "spec.devices[0]"


def test_error_paths_of_events_are_renamed() -> None:
    assert convert_path("involvedObject.namespace", EVENTS) == "regarding.namespace"
    assert convert_path("regarding.namespace", "v1") == "involvedObject.namespace"
    assert convert_path("involvedObject.namespace", "v1") == "involvedObject.namespace"
    assert convert_path("spec.source", "v1") == "spec.source"


def test_deprecated_versions_come_with_a_warning() -> None:
    claims, rules = kinds.RESOURCE_CLAIMS.kind, kinds.DEVICE_TAINT_RULES.kind
    v1beta1 = "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+"
    v1beta2 = "resource.k8s.io/v1beta2 ResourceClaim is deprecated in v1.36+, unavailable in v1.39+"
    assert warning_for(Resource(claims, V1BETA1)) == v1beta1
    assert warning_for(Resource(claims, V1BETA2)) == v1beta2
    assert warning_for(Resource(rules, V1BETA2)) is None  # not before v1.39
    assert warning_for(Resource(claims, V1)) is None
    assert warning_for(kinds.PODS) is None
