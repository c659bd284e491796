from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.cluster.store import preparing
from devlet.errors import BadRequest
from devlet.objects.documents import Document, copy
from devlet.objects.kinds import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)

NOW = datetime(2025, 1, 1, tzinfo=UTC)
EARLIER = "2024-01-01T00:00:00Z"


def document(resource: Resource, **members: Any) -> Document:
    metadata = {"name": "a", **members.pop("metadata", {})}
    return {"kind": resource.kind.kind, "apiVersion": resource.api_version, "metadata": metadata, **members}


def stored(resource: Resource, **members: Any) -> Document:
    made = document(resource, **members)
    made["metadata"] |= {"uid": "u", "creationTimestamp": EARLIER}
    return made


def updated(resource: Resource, new: Document, old: Document, subresource: str = "") -> Document:
    before = copy(old)
    preparing.prepare_update(resource.kind, new, old, subresource=subresource, now=NOW)
    assert old == before, "the old object is not ours to change"
    return new


def test_the_server_sets_its_own_metadata() -> None:
    mine = {
        "uid": "mine",
        "creationTimestamp": EARLIER,
        "deletionTimestamp": EARLIER,
        "generation": 9,
        "selfLink": "/x",
    }
    made = document(CONFIG_MAPS, metadata=mine)
    preparing.prepare_create(CONFIG_MAPS.kind, made, uid="theirs", now=NOW)
    assert made["metadata"] == {"name": "a", "uid": "theirs", "creationTimestamp": "2025-01-01T00:00:00Z"}


def test_a_kind_that_counts_starts_with_generation_one() -> None:
    made = document(DEVICE_CLASSES, spec={})
    preparing.prepare_create(DEVICE_CLASSES.kind, made, uid="u", now=NOW)
    assert made["metadata"]["generation"] == 1


def test_an_object_with_a_version_cannot_be_created() -> None:
    with pytest.raises(BadRequest, match="resourceVersion should not be set"):
        preparing.prepare_create(
            CONFIG_MAPS.kind, document(CONFIG_MAPS, metadata={"resourceVersion": "1"}), uid="u", now=NOW
        )


def test_status_is_for_the_server_except_of_nodes() -> None:
    for resource, expected in ((NODES, "mine"), (RESOURCE_CLAIMS, None)):
        made = document(resource, spec={}, status={"x": "mine"})
        preparing.prepare_create(resource.kind, made, uid="u", now=NOW)
        assert made["status"].get("x") == expected


def created_pod(*, annotations: Document | None = None, **spec: Any) -> Document:
    made = document(PODS, metadata={"annotations": annotations or {}}, spec={"containers": [], **spec})
    preparing.prepare_create(PODS.kind, made, uid="u", now=NOW)
    return made


def test_a_pod_has_a_service_account_unless_it_mirrors_a_static_pod() -> None:
    assert created_pod()["spec"]["serviceAccountName"] == "default"
    assert "serviceAccountName" not in created_pod(annotations={"kubernetes.io/config.mirror": "x"})["spec"]


def test_a_pod_with_scheduling_gates_says_that_it_waits_for_them() -> None:
    made = created_pod(schedulingGates=[{"name": "later"}])
    assert made["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": "2025-01-01T00:00:00Z",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]
    assert made["status"]["phase"] == "Pending"
    assert "conditions" not in created_pod(schedulingGates=[])["status"]


@pytest.mark.parametrize(
    ("resource", "subresource", "labels", "owners", "spec", "status"),
    [
        (CONFIG_MAPS, "", "new", "new", "new", "new"),
        (PODS, "", "new", "new", "new", "old"),
        (PODS, "status", "new", "old", "old", "new"),
        (NODES, "status", "new", "new", "old", "new"),
        (RESOURCE_CLAIMS, "", "new", "new", "new", "old"),
        (RESOURCE_CLAIMS, "status", "old", "old", "old", "new"),
    ],
    ids=lambda value: getattr(value, "plural", value),
)
def test_which_side_each_door_writes(
    resource: Resource, subresource: str, labels: str, owners: str, spec: str, status: str
) -> None:
    def version(which: str) -> Document:
        metadata = {"labels": {"x": which}, "ownerReferences": [{"uid": which}]}
        return stored(resource, metadata=metadata, spec={"x": which}, status={"x": which})

    new = updated(resource, version("new"), version("old"), subresource)
    assert new["metadata"]["labels"] == {"x": labels}
    assert new["metadata"]["ownerReferences"] == [{"uid": owners}]
    assert (new["spec"]["x"], new["status"]["x"]) == (spec, status)


def test_finalizing_a_namespace_changes_its_finalizers_only() -> None:
    old = stored(NAMESPACES, spec={"finalizers": ["kubernetes"]}, status={"phase": "Terminating"})
    new = stored(NAMESPACES, metadata={"labels": {"x": "y"}}, spec={"finalizers": []}, status={})
    new = updated(NAMESPACES, new, old, "finalize")
    assert (new["spec"]["finalizers"], new["status"]) == ([], {"phase": "Terminating"})


def test_the_generation_counts_changes_of_spec() -> None:
    old = stored(DEVICE_CLASSES, metadata={"generation": 4}, spec={"a": 1})
    same = updated(DEVICE_CLASSES, stored(DEVICE_CLASSES, spec={"a": 1}), old)
    other = updated(DEVICE_CLASSES, stored(DEVICE_CLASSES, metadata={"generation": 1}, spec={"a": 2}), old)
    assert (same["metadata"]["generation"], other["metadata"]["generation"]) == (4, 5)


def test_the_status_of_a_released_device_goes() -> None:
    def claim(*allocated: str, reported: tuple[str, ...]) -> Document:
        results = [{"request": "r", "driver": "d", "pool": "p", "device": name} for name in allocated]
        devices = [{"driver": "d", "pool": "p", "device": name} for name in reported]
        status = {"allocation": {"devices": {"results": results}}, "devices": devices}
        return stored(RESOURCE_CLAIMS, spec={}, status=status)

    old = claim("a", "b", reported=("a", "b"))
    new = updated(RESOURCE_CLAIMS, claim("a", reported=("a", "b")), old, "status")
    assert [device["device"] for device in new["status"]["devices"]] == ["a"]
    freed = stored(RESOURCE_CLAIMS, spec={}, status={"devices": old["status"]["devices"]})
    assert "devices" not in updated(RESOURCE_CLAIMS, freed, old, "status")["status"]


@pytest.mark.parametrize(
    ("metadata", "spec", "finished"),
    [
        ({}, {}, False),
        ({"deletionTimestamp": EARLIER}, {}, True),
        ({"deletionTimestamp": EARLIER, "deletionGracePeriodSeconds": 0}, {}, True),
        ({"deletionTimestamp": EARLIER, "deletionGracePeriodSeconds": 5}, {}, False),
        ({"deletionTimestamp": EARLIER, "finalizers": ["a/b"]}, {}, False),
        ({"deletionTimestamp": EARLIER, "finalizers": []}, {}, True),
        ({"deletionTimestamp": EARLIER}, {"finalizers": ["kubernetes"]}, False),
    ],
)
def test_when_nothing_is_left_to_wait_for(metadata: Document, spec: Document, finished: bool) -> None:
    assert preparing.is_finished(NAMESPACES.kind, document(NAMESPACES, metadata=metadata, spec=spec)) is finished


def test_keys_come_in_the_order_people_expect() -> None:
    mixed = {"spec": {}, "metadata": {"labels": {}, "uid": "u", "name": "a"}, "apiVersion": "v1", "kind": "Pod"}
    ordered = preparing.ordered(mixed)
    assert list(ordered) == ["kind", "apiVersion", "metadata", "spec"]
    assert list(ordered["metadata"]) == ["name", "uid", "resourceVersion", "labels"]


@pytest.mark.parametrize("resource", [PODS, RESOURCE_CLAIMS, NODES, CONFIG_MAPS])
@pytest.mark.parametrize("change", [{}, {"spec": {"b": 2}}, {"status": {"phase": "x"}}, {"spec": None, "more": {}}])
def test_what_still_is_the_stored_objects_own_needs_no_copy(resource: Resource, change: Document) -> None:
    """As a patch leaves it: parts that it does not touch are those of the object it was applied to."""
    old = stored(resource, spec={"a": {"b": 1}}, status={"phase": "y"}, data={"k": "v"})
    live = copy(old)
    patched = {key: value for key, value in {**live, **change}.items() if value is not None}
    patched["metadata"] = dict(live["metadata"])
    copied = updated(resource, copy(patched), old, "status")
    preparing.prepare_update(resource.kind, patched, old, subresource="status", now=NOW, live=live)
    assert patched == copied
    if "spec" not in change:
        assert patched["spec"] is live["spec"]
