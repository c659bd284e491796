"""The door to all defaults, and those of small kinds."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.objects.conversion import convert
from devlet.objects.documents import Document, copy
from devlet.objects.kind_rules import default
from devlet.objects.kinds import BUILT_IN

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KINDS = {kind.kind: kind for kind in BUILT_IN}
VECTORS = [
    vector["json"]
    for vector in json.loads((Path(__file__).parents[3] / "vectors/kube_protobuf.json").read_text())["vectors"]
    if vector["kind"] in KINDS and vector["apiVersion"] in KINDS[vector["kind"]].api_versions
]


def made(api_version: str, kind: str, old: Document | None = None, **fields: Any) -> Document:
    document = {"apiVersion": api_version, "kind": kind, **fields}
    answer = default(document, now=NOW, old=old)
    assert answer is document
    return {key: value for key, value in answer.items() if key not in ("apiVersion", "kind")}


def contains(whole: Any, part: Any) -> bool:
    """Whether `part` is still there; null and empty scalars may have been filled."""
    match part:
        case None | "" | 0 if part is not False:
            return True
        case dict():
            return all(contains(whole.get(key), value) for key, value in part.items())
        case list() if part:
            return all(map(contains, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['apiVersion']}/{v['kind']}")
def test_defaults_add_to_a_sample_take_nothing_away_and_are_idempotent(vector: Document) -> None:
    stored = convert(vector, KINDS[vector["kind"]].storage_version)
    once = default(copy(stored), now=NOW)
    stored.pop("stringData", None)  # merged into data
    if vector["kind"] == "Namespace" and "labels" in stored["metadata"]:
        stored["metadata"]["labels"].pop("kubernetes.io/metadata.name", None)
    if vector["kind"] == "Pod":
        stored.get("spec", {}).pop("serviceAccount", None)  # follows serviceAccountName
    assert contains(once, stored)
    assert default(copy(once), now=NOW) == once
    assert default(copy(once), now=NOW, old=once) == once


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "containers volumes ports tolerations devices requests exactly firstAvailable taints taint finalizers"
                " capacity labels name resources limits allocation results nodeInfo".split()
            ),
            inner,
        )
    ),
)
PARTS = st.dictionaries(st.sampled_from(["metadata", "spec", "status", "data", "stringData", "source"]), JSON)


@settings(deadline=None)
@given(st.sampled_from(BUILT_IN), PARTS, st.none() | PARTS)
def test_defaulting_never_fails_whatever_the_shape_of_the_document(
    kind: Any, parts: Document, old: Document | None
) -> None:
    document = {"apiVersion": kind.storage_version, "kind": kind.kind, **copy(parts)}
    once = copy(default(document, now=NOW, old=old))
    assert default(document, now=NOW, old=once) == once


def test_kinds_without_defaults_are_left_alone() -> None:
    for kind in ("ConfigMap", "ServiceAccount", "Unheard"):
        assert made("v1", kind, data={"a": "b"}) == {"data": {"a": "b"}}
    assert made("coordination.k8s.io/v1", "Lease", spec={}) == {"spec": {}}
    assert default({}, now=NOW) == {}


@pytest.mark.spec("KA-7.1")
def test_pods_and_claims_get_their_defaults_from_the_same_function() -> None:
    assert made("v1", "Pod", spec={})["spec"]["restartPolicy"] == "Always"
    requests: list[Document] = [{"exactly": {}}]
    assert made("resource.k8s.io/v1", "ResourceClaim", spec={"devices": {"requests": requests}})["status"] == {}
    assert requests == [{"exactly": {"allocationMode": "ExactCount", "count": 1}}]
    slice_ = made("resource.k8s.io/v1", "ResourceSlice", spec={"devices": [{"taints": [{"key": "k"}]}]})
    assert slice_["spec"]["devices"][0]["taints"][0]["timeAdded"] == "2026-01-02T03:04:05Z"
    assert made("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", spec={})["spec"] == {"limit": 100}


@pytest.mark.spec("KA-7.1")
def test_a_node_may_use_all_it_has_unless_it_says_less() -> None:
    status = made("v1", "Node", status={"capacity": {"cpu": "4"}})["status"]
    assert status["allocatable"] == {"cpu": "4"}
    assert status["allocatable"] is not status["capacity"]
    less = made("v1", "Node", status={"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}})["status"]
    assert less["allocatable"] == {"cpu": "3"}


@pytest.mark.spec("KA-7.1")
def test_a_node_always_has_info_and_endpoints() -> None:
    node = made("v1", "Node")
    assert "allocatable" not in node["status"]
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert set(node["status"]["nodeInfo"].values()) == {""}
    assert len(node["status"]["nodeInfo"]) == 10


@pytest.mark.spec("KA-7.1")
def test_a_new_namespace_is_active_labelled_and_finalized_by_kubernetes() -> None:
    assert made("v1", "Namespace", metadata={"name": "n"}) == {
        "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


@pytest.mark.spec("KA-7.1")
def test_a_namespace_that_was_finalized_stays_so() -> None:
    old = {"metadata": {"name": "n"}}
    namespace = made("v1", "Namespace", old, metadata={"name": "n"}, spec={}, status={"phase": "Terminating"})
    assert namespace["spec"] == {}
    assert namespace["status"] == {"phase": "Terminating"}


def test_string_data_of_a_secret_is_stored_as_its_data() -> None:
    secret = made("v1", "Secret", data={"a": "b2xk", "b": "b2xk"}, stringData={"a": "new"})
    assert secret == {"type": "Opaque", "data": {"a": "bmV3", "b": "b2xk"}}
    assert made("v1", "Secret", type="x/y") == {"type": "x/y"}


@pytest.mark.spec("KA-A1")
def test_an_event_has_the_keys_that_both_shapes_always_show() -> None:
    event = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "m", "eventTime": "2026-01-01T00:00:00.000000Z"}
    core = default(convert(event, "v1"), now=NOW)
    assert core.keys() >= {"firstTimestamp", "lastTimestamp", "eventTime", "source", "reportingComponent"}
    assert core["reportingInstance"] == ""
    assert core["eventTime"] == event["eventTime"]
    new = convert(core, "events.k8s.io/v1")
    assert new.keys() >= {"eventTime", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"}


def test_other_kinds_get_their_few_defaults() -> None:
    preempting = {"value": 0, "preemptionPolicy": "PreemptLowerPriority"}
    assert made("scheduling.k8s.io/v1", "PriorityClass") == preempting
    assert made("storage.k8s.io/v1", "StorageClass") == {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
    service = made("v1", "Service", spec={"ports": [{"port": 80}]})
    assert service["spec"]["type"] == "ClusterIP"
    assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert made("v1", "PersistentVolume")["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made("v1", "PersistentVolumeClaim")["status"] == {"phase": "Pending"}
