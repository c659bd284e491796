from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects import documents
from devlet.objects.documents import Document
from devlet.objects.patches import strategic_merge
from devlet.objects.schema.messages import message, message_of

POD = message_of("v1", "Pod")


def patched(document: Document, patch: Any, kind: str = "v1/Pod") -> Document:
    api_version, _, name = kind.rpartition("/")
    before = documents.copy((document, patch))
    result = strategic_merge.apply(document, patch, message_of(api_version, name))
    assert (document, patch) == before
    return result


def containers(*names: str) -> Document:
    return {"spec": {"containers": [{"name": name} for name in names]}}


def names(document: Document) -> list[str]:
    return [container["name"] for container in document["spec"]["containers"]]


# The table of merge lists: message, field, merge key. An empty key: plain values.
MERGED = [
    ("apimachinery.pkg.apis.meta.v1.ObjectMeta", "ownerReferences", "uid"),
    ("apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers", ""),
    ("api.core.v1.PodSpec", "volumes", "name"),
    ("api.core.v1.PodSpec", "containers", "name"),
    ("api.core.v1.PodSpec", "initContainers", "name"),
    ("api.core.v1.PodSpec", "ephemeralContainers", "name"),
    ("api.core.v1.PodSpec", "imagePullSecrets", "name"),
    ("api.core.v1.PodSpec", "hostAliases", "ip"),
    ("api.core.v1.PodSpec", "topologySpreadConstraints", "topologyKey"),
    ("api.core.v1.PodSpec", "schedulingGates", "name"),
    ("api.core.v1.PodSpec", "resourceClaims", "name"),
    ("api.core.v1.Container", "ports", "containerPort"),
    ("api.core.v1.Container", "env", "name"),
    ("api.core.v1.Container", "volumeMounts", "mountPath"),
    ("api.core.v1.Container", "volumeDevices", "devicePath"),
    ("api.core.v1.EphemeralContainer", "ports", "containerPort"),
    ("api.core.v1.EphemeralContainer", "env", "name"),
    ("api.core.v1.EphemeralContainer", "volumeMounts", "mountPath"),
    ("api.core.v1.EphemeralContainer", "volumeDevices", "devicePath"),
    ("api.core.v1.PodStatus", "conditions", "type"),
    ("api.core.v1.PodStatus", "podIPs", "ip"),
    ("api.core.v1.PodStatus", "hostIPs", "ip"),
    ("api.core.v1.PodStatus", "resourceClaimStatuses", "name"),
    ("api.core.v1.ContainerStatus", "volumeMounts", "mountPath"),
    ("api.core.v1.ContainerStatus", "allocatedResourcesStatus", "name"),
    ("api.core.v1.NodeSpec", "podCIDRs", ""),
    ("api.core.v1.NodeStatus", "conditions", "type"),
    ("api.core.v1.NodeStatus", "addresses", "type"),
    ("api.core.v1.NamespaceStatus", "conditions", "type"),
    ("api.core.v1.ServiceAccount", "secrets", "name"),
    ("api.core.v1.ServiceSpec", "ports", "port"),
    ("api.resource.v1.ResourceClaimStatus", "reservedFor", "uid"),
    ("api.resource.v1beta1.ResourceClaimStatus", "reservedFor", "uid"),
    ("api.resource.v1beta2.ResourceClaimStatus", "reservedFor", "uid"),
    ("api.resource.v1beta2.DeviceTaintRuleStatus", "conditions", "type"),
    ("api.resource.v1alpha3.DeviceTaintRuleStatus", "conditions", "type"),
]

REPLACED = [
    ("api.core.v1.PodStatus", "containerStatuses"),
    ("api.core.v1.NodeSpec", "taints"),
    ("api.core.v1.NodeStatus", "images"),
    ("api.core.v1.NodeStatus", "volumesAttached"),
    ("api.core.v1.PodSpec", "tolerations"),
    ("api.core.v1.ResourceRequirements", "claims"),
    ("api.resource.v1.ResourceClaimStatus", "devices"),
    ("api.resource.v1beta1.ResourceClaimStatus", "devices"),
    ("api.resource.v1beta2.ResourceClaimStatus", "devices"),
    ("api.resource.v1.DeviceClaim", "requests"),
    ("api.resource.v1.ResourceSliceSpec", "devices"),
]


@pytest.mark.spec("KA-3.7-strategic")
@pytest.mark.parametrize(("name", "field", "key"), MERGED, ids=[f"{m}.{f}" for m, f, _ in MERGED])
def test_a_merge_list_is_merged_by_its_key(name: str, field: str, key: str) -> None:
    old, new = ([{key: "a", "x": 1}, {key: "b"}], [{key: "b", "y": 2}, {key: "c"}]) if key else (["a", "b"], ["c"])
    result = strategic_merge.apply({field: old}, {field: new}, message(f"k8s.io.{name}"))
    merged = [{key: "a", "x": 1}, {key: "b", "y": 2}, {key: "c"}] if key else ["c", "a", "b"]
    assert result == {field: merged}


@pytest.mark.spec("KA-3.7-strategic")
@pytest.mark.parametrize(("name", "field"), REPLACED, ids=[f"{m}.{f}" for m, f in REPLACED])
def test_any_other_list_is_replaced(name: str, field: str) -> None:
    result = strategic_merge.apply({field: [{"name": "a"}]}, {field: [{"name": "b"}]}, message(f"k8s.io.{name}"))
    assert result == {field: [{"name": "b"}]}


@pytest.mark.spec("KA-3.7-strategic")
def test_maps_merge_and_null_deletes() -> None:
    pod = {"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}}}
    patch = {"metadata": {"labels": {"a": None, "c": "3"}, "annotations": None, "absent": None}}
    assert patched(pod, patch) == {"metadata": {"labels": {"b": "2", "c": "3"}}}


def test_nulls_in_a_new_map_leave_nothing_behind() -> None:
    assert patched({}, {"metadata": {"labels": {"a": None, "b": "1"}}}) == {"metadata": {"labels": {"b": "1"}}}


def test_a_value_of_another_type_is_replaced() -> None:
    assert patched({"spec": {"containers": "odd"}}, containers("a")) == containers("a")
    assert patched({"metadata": ["odd"]}, {"metadata": {"name": "p"}}) == {"metadata": {"name": "p"}}


def test_new_elements_come_first_and_known_ones_stay_among_their_neighbours() -> None:
    assert names(patched(containers("a", "b"), containers("new"))) == ["new", "a", "b"]
    assert names(patched(containers("a", "b", "c"), containers("b"))) == ["a", "b", "c"]
    assert names(patched(containers("a", "b", "c"), containers("c", "a"))) == ["b", "c", "a"]


@pytest.mark.spec("KA-3.7-strategic")
def test_set_element_order_says_where_everything_goes() -> None:
    order = {"$setElementOrder/containers": [{"name": n} for n in ("c", "a", "new")]}
    patch = {"spec": {**order, "containers": [{"name": "new", "image": "i"}]}}
    result = patched(containers("a", "b", "c"), patch)
    assert names(result) == ["b", "c", "a", "new"]
    assert result["spec"]["containers"][3] == {"name": "new", "image": "i"}


def test_set_element_order_alone_reorders() -> None:
    pod = {"metadata": {"finalizers": ["x", "y", "z"]}}
    assert patched(pod, {"metadata": {"$setElementOrder/finalizers": ["z", "x"]}}) == {
        "metadata": {"finalizers": ["y", "z", "x"]}
    }


def test_set_element_order_of_a_missing_list_does_nothing() -> None:
    assert patched({"metadata": {}}, {"metadata": {"$setElementOrder/finalizers": ["z"]}}) == {"metadata": {}}


def test_elements_may_not_contradict_the_order() -> None:
    order = {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}]}
    for wrong in (containers("b", "a"), containers("c")):
        with pytest.raises(BadRequest, match="does not match"):
            patched(containers("a"), {"spec": {**order, **wrong["spec"]}})


@pytest.mark.spec("KA-3.7-strategic")
def test_the_patch_directive_deletes_replaces_or_merges_an_object() -> None:
    pod = {"metadata": {"labels": {"a": "1"}}}
    for directive, result in (("delete", {}), ("replace", {"b": "2"}), ("merge", {"a": "1", "b": "2"})):
        patch = {"metadata": {"labels": {"$patch": directive, "b": "2"}}}
        assert patched(pod, patch) == {"metadata": {"labels": result}}


def test_deleting_a_missing_object_does_not_create_it() -> None:
    assert patched({"metadata": {}}, {"metadata": {"labels": {"$patch": "delete"}}}) == {"metadata": {}}


@pytest.mark.spec("KA-3.7-strategic")
def test_the_patch_directive_in_an_element_deletes_it_or_replaces_the_list() -> None:
    delete = {"spec": {"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": "i"}]}}
    assert patched(containers("a", "b"), delete) == {"spec": {"containers": [{"name": "b", "image": "i"}]}}
    replace = {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}
    assert patched(containers("a", "b"), replace) == containers("z")
    merge = {"spec": {"containers": [{"name": "a", "$patch": "merge", "image": "i"}]}}
    assert patched(containers("a"), merge) == {"spec": {"containers": [{"name": "a", "image": "i"}]}}


def test_deleting_from_a_missing_list_leaves_no_directive_behind() -> None:
    patch = {"spec": {"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "env": [{"name": "e"}]}]}}
    assert patched({"spec": {}}, patch) == {"spec": {"containers": [{"name": "b", "env": [{"name": "e"}]}]}}


@pytest.mark.spec("KA-3.7-strategic")
def test_values_are_deleted_from_plain_lists_whatever_their_strategy() -> None:
    pod = {"metadata": {"finalizers": ["x", "y"]}, "spec": {"odd": [1, 2, {"a": 1}]}}
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["x", "absent"], "finalizers": ["z"]},
        "spec": {"$deleteFromPrimitiveList/odd": [2], "$deleteFromPrimitiveList/absent": [1]},
    }
    assert patched(pod, patch) == {"metadata": {"finalizers": ["z", "y"]}, "spec": {"odd": [1, {"a": 1}]}}


@pytest.mark.spec("KA-3.7-strategic")
def test_retain_keys_drops_the_other_keys() -> None:
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    change = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    assert patched(pod, {"spec": {"volumes": [change]}}) == {
        "spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}
    }


def test_a_merged_plain_list_keeps_every_value_once() -> None:
    pod = {"metadata": {"finalizers": ["x", "y"]}}
    assert patched(pod, {"metadata": {"finalizers": ["y", "n", "n"]}}) == {"metadata": {"finalizers": ["x", "y", "n"]}}


def test_ports_are_merged_by_number_so_that_text_is_another_key() -> None:
    old = {"spec": {"ports": [{"port": 80, "name": "a"}]}}
    result = patched(old, {"spec": {"ports": [{"port": 80, "name": "b"}, {"port": "80"}]}}, "v1/Service")
    assert result == {"spec": {"ports": [{"port": 80, "name": "b"}, {"port": "80"}]}}


def test_elements_without_a_key_on_the_server_are_left_alone() -> None:
    pod = {"spec": {"containers": [{"image": "odd"}, {"name": "a"}]}}
    assert patched(pod, containers("a")) == pod


def test_nested_merge_lists_are_merged() -> None:
    pod = {"spec": {"containers": [{"name": "a", "env": [{"name": "x", "value": "1"}, {"name": "y"}]}]}}
    patch = {"spec": {"containers": [{"name": "a", "env": [{"name": "x", "value": None, "valueFrom": {}}]}]}}
    assert patched(pod, patch) == {
        "spec": {"containers": [{"name": "a", "env": [{"name": "x", "valueFrom": {}}, {"name": "y"}]}]}
    }


def test_unknown_fields_and_unknown_kinds_are_plain_json() -> None:
    assert patched({"spec": {"odd": {"a": [1]}}}, {"spec": {"odd": {"a": [2], "b": 3}}}) == {
        "spec": {"odd": {"a": [2], "b": 3}}
    }
    assert strategic_merge.apply(containers("a"), containers("b"), None) == containers("b")


@pytest.mark.spec("KA-3.7-strategic")
@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ([], "must be an object"),
        ({"spec": {"containers": [{"image": "i"}]}}, 'does not contain the merge key "name"'),
        ({"spec": {"containers": [{"$patch": "delete"}]}}, 'does not contain the merge key "name"'),
        ({"spec": {"containers": ["a"]}}, 'expected objects with the key "name"'),
        ({"spec": {"containers": [{"name": {}}]}}, "expected plain values"),
        ({"spec": {"containers": [{"name": "a", "$patch": "zap"}]}}, "got 'zap'"),
        ({"spec": {"$patch": ["delete"]}}, '"$patch" must be delete, replace or merge'),
        ({"spec": {"$setElementOrder/containers": "a"}}, "must be a list"),
        ({"spec": {"$setElementOrder/containers": [{"image": "i"}]}}, "does not contain the merge key"),
        ({"spec": {"$setElementOrder/nodeName": ["a"]}}, "is not a list that can be merged"),
        ({"metadata": {"finalizers": [{"a": 1}]}}, "expected plain values"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}}, "must be a list"),
        ({"spec": {"$retainKeys": "name"}}, "must be a list of keys"),
        ({"spec": {"$retainKeys": ["nodeName"], "hostname": "h"}}, 'sets "hostname"'),
    ],
)
def test_an_invalid_patch_is_a_bad_request(patch: Any, text: str) -> None:
    pod = {"metadata": {"finalizers": ["f"]}, "spec": {"containers": [{"name": "a"}], "nodeName": "n"}}
    with pytest.raises(BadRequest) as refused:
        patched(pod, patch)
    assert text in str(refused.value)


def test_a_patch_that_is_too_deep_is_a_bad_request() -> None:
    patch: Document = {}
    for _ in range(5000):
        patch = {"a": patch}
    with pytest.raises(BadRequest, match="levels deep"):
        strategic_merge.apply({}, patch, POD)


def test_long_lists_are_merged_quickly() -> None:
    many = containers(*(f"c{i}" for i in range(20_000)))
    assert strategic_merge.apply(many, many, POD) == many


def named(letters: str, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Document]]:
    element = st.fixed_dictionaries({"name": st.sampled_from(letters)}, optional=optional)
    return st.lists(element, unique_by=lambda item: str(item["name"]), max_size=4)


def some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional=optional)


metadata = some(
    labels=st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
    finalizers=st.lists(st.sampled_from(["f/1", "f/2", "f/3"]), unique=True),
)
spec = some(
    containers=named("abcd", env=named("xyz", value=st.sampled_from("12"))),
    tolerations=st.lists(st.fixed_dictionaries({"key": st.sampled_from("ab")}), max_size=2),
)
pods = some(metadata=metadata, spec=spec)


@settings(deadline=None)
@given(pods)
def test_a_document_is_the_patch_that_does_nothing_to_it(pod: Document) -> None:
    assert patched(pod, pod) == pod
    assert patched(pod, {}) == pod


@settings(deadline=None)
@given(pods, pods)
def test_a_patch_applied_twice_is_the_same_as_once_and_shows_up_completely(pod: Document, patch: Document) -> None:
    once = patched(pod, patch)
    assert patched(once, patch) == once
    old, wanted, new = ({c["name"] for c in d.get("spec", {}).get("containers", [])} for d in (pod, patch, once))
    assert new == old | wanted
    if wanted:
        asked = [c["name"] for c in patch["spec"]["containers"]]
        assert [name for name in names(once) if name in wanted] == asked
