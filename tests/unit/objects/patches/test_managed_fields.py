from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects import documents
from devlet.objects.documents import Document
from devlet.objects.patches.field_sets import EMPTY, FieldSet, field_set, parse
from devlet.objects.patches.managed_fields import MAX_SENT_ENTRIES, MAX_UPDATE_ENTRIES, decode, encode, stored, updated
from devlet.objects.schema.messages import message_of

NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"


def config_map(data: Document | None = None, **metadata: Any) -> Document:
    document: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return document if data is None else {**document, "data": data}


def write(
    old: Document | None, new: Document, manager: str, *, subresource: str = "", now: str = NOON, version: str = "v1"
) -> Document:
    """The new object as it is stored after the manager sent it, managedFields untouched by the client."""
    before = documents.copy((old, new))
    if old is not None and "managedFields" in old["metadata"]:
        new = {**new, "metadata": {"managedFields": old["metadata"]["managedFields"], **new["metadata"]}}
    entries = updated(old, new, manager, version, subresource, now)
    assert before[0] == old
    metadata = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
    return {**new, "metadata": {**metadata, **({"managedFields": entries} if entries else {})}}


def owners(document: Document) -> dict[str, list[str]]:
    return {e.manager: list(e.fields.paths()) for e in decode(document["metadata"].get("managedFields", []))}


@pytest.mark.spec("KA-3.8-d")
def test_the_creator_of_an_object_manages_all_of_it() -> None:
    created = write(None, config_map({"a": "1"}, labels={"l": "1"}), "m1")
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOON,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
        }
    ]


@pytest.mark.spec("KA-3.8-d")
def test_changing_a_field_takes_it_from_the_other_managers() -> None:
    created = write(None, config_map({"a": "1", "b": "1"}), "m1")
    changed = write(created, config_map({"a": "2", "b": "1", "c": "1"}), "m2")
    assert owners(changed) == {"m1": [".data", ".data.b"], "m2": [".data.a", ".data.c"]}


def test_a_removed_field_has_no_manager_and_an_empty_entry_is_removed() -> None:
    created = write(None, config_map({"a": "1"}), "m1")
    added = write(created, config_map({"a": "1", "b": "1"}), "m2")
    removed = write(added, config_map({"a": "1"}), "m3")
    assert owners(removed) == {"m1": [".data", ".data.a"]}
    assert owners(write(removed, config_map(), "m3")) == {}


def test_the_time_changes_only_when_the_set_does() -> None:
    created = write(None, config_map({"a": "1"}), "m1")
    same_set = write(created, config_map({"a": "2"}), "m1", now=LATER)
    assert same_set["metadata"]["managedFields"] == created["metadata"]["managedFields"]
    larger = write(same_set, config_map({"a": "2", "b": "1"}), "m1", now=LATER)
    assert larger["metadata"]["managedFields"][0]["time"] == LATER
    taken = write(larger, config_map({"a": "3", "b": "1"}), "m2", now="2026-01-01T14:00:00Z")
    assert [e["time"] for e in taken["metadata"]["managedFields"]] == [LATER, "2026-01-01T14:00:00Z"]


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    created = write(None, config_map({"a": "1"}), "m1")
    assert write(created, config_map({"a": "1"}), "m2", now=LATER) == created


def test_names_and_what_the_server_sets_have_no_manager() -> None:
    metadata: Document = {
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": NOON,
        "deletionTimestamp": NOON,
        "deletionGracePeriodSeconds": 0,
        "generation": 1,
        "selfLink": "/x",
    }
    assert owners(write(None, config_map(**metadata), "m1")) == {}
    assert owners(write(None, config_map(generateName="g-", **metadata), "m1")) == {"m1": [".metadata.generateName"]}


def test_the_status_belongs_to_the_entry_of_its_subresource() -> None:
    node: Document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"podCIDR": "x"}}
    created = write(None, {**node, "status": {"phase": "Pending"}}, "kubelet")
    assert owners(created) == {"kubelet": [".spec.podCIDR"]}
    running = write(created, {**node, "status": {"phase": "Running"}}, "kubelet", subresource="status")
    entries = running["metadata"]["managedFields"]
    assert [(e["manager"], e.get("subresource"), e["fieldsV1"]) for e in entries] == [
        ("kubelet", None, {"f:spec": {"f:podCIDR": {}}}),
        ("kubelet", "status", {"f:status": {"f:phase": {}}}),
    ]


def test_a_kind_whose_status_is_a_field_like_any_other_says_so() -> None:
    custom = {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "status": {"a": 1}}
    (entry,) = updated(None, custom, "m", "x.io/v1", "", NOON, reset=EMPTY)
    assert entry["fieldsV1"] == {"f:status": {".": {}, "f:a": {}}}


def test_there_is_one_entry_per_manager_and_version() -> None:
    created = write(None, config_map({"a": "1"}), "m1")
    other = write(created, config_map({"a": "1", "b": "1"}), "m1", version="v2")
    assert [e["apiVersion"] for e in other["metadata"]["managedFields"]] == ["v1", "v2"]
    again = write(other, config_map({"a": "1", "b": "1", "c": "1"}), "m1")
    assert len(again["metadata"]["managedFields"]) == 2


@pytest.mark.parametrize("sent", [[], None, [{}]])
def test_a_client_that_sends_an_empty_list_clears_it_for_good(sent: Any) -> None:
    created = write(None, config_map({"a": "1"}), "m1")
    cleared = write(created, config_map({"a": "2"}, managedFields=sent), "m1")
    assert "managedFields" not in cleared["metadata"]
    assert "managedFields" not in write(cleared, config_map({"a": "3"}), "m1")["metadata"]


def test_a_client_that_does_not_mention_the_list_keeps_it() -> None:
    created = write(None, config_map({"a": "1"}), "m1")
    entries = updated(created, config_map({"a": "2"}), "m1", "v1", "", LATER)
    assert entries == created["metadata"]["managedFields"]


def test_a_client_may_rewrite_the_list_but_not_with_nonsense_nor_through_a_subresource() -> None:
    created = write(None, config_map({"a": "1"}), "m1")
    (entry,) = created["metadata"]["managedFields"]
    renamed = config_map({"a": "1"}, managedFields=[{**entry, "manager": "m9"}])
    assert [e["manager"] for e in updated(created, renamed, "m1", "v1", "", NOON)] == ["m9"]
    assert [e["manager"] for e in updated(created, renamed, "m1", "v1", "status", NOON)] == ["m1"]
    broken = config_map({"a": "1"}, managedFields=[{**entry, "fieldsV1": {"x": {}}}])
    assert [e["manager"] for e in updated(created, broken, "m1", "v1", "", NOON)] == ["m1"]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        [1],
        [{}],
        [{"operation": "Zap", "fieldsType": "FieldsV1"}],
        [{"operation": "Apply", "fieldsType": "FieldsV2"}],
        [{"operation": "Apply", "fieldsType": "FieldsV1", "manager": 1}],
    ],
)
def test_an_invalid_list_is_a_bad_request(raw: Any) -> None:
    with pytest.raises(BadRequest, match="managedFields"):
        decode(raw)


def test_an_invalid_stored_list_counts_as_empty() -> None:
    broken = config_map({"a": "1"}, managedFields=[{"operation": "Zap"}])
    assert updated(broken, config_map({"a": "2"}), "m", "v1", "", NOON) == []


def test_the_oldest_updates_beyond_ten_are_merged_into_one_entry() -> None:
    document = write(None, config_map({"k0": "v"}), "m0", now="t00")
    for i in range(1, 20):
        document = write(document, config_map({f"k{j}": "v" for j in range(i + 1)}), f"m{i}", now=f"t{i:02}")
    managers = owners(document)
    assert len(managers) == MAX_UPDATE_ENTRIES
    assert managers["m19"] == [".data.k19"]
    assert len(managers["ancient-changes"]) == 12
    assert sorted(p for paths in managers.values() for p in paths) == sorted(
        [".data", *(f".data.k{j}" for j in range(20))]
    )


def test_a_slice_of_many_devices_has_a_small_set() -> None:
    devices = [{"name": f"gpu-{i}"} for i in range(128)]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    version = "resource.k8s.io/v1"
    spec = {"driver": "d", "pool": pool, "devices": devices}
    document = {"apiVersion": version, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    (entry,) = updated(None, document, "driver", version, "", NOON)
    pool_fields: Document = {"f:generation": {}, "f:name": {}, "f:resourceSliceCount": {}}
    assert entry["fieldsV1"] == {"f:spec": {"f:devices": {}, "f:driver": {}, "f:pool": pool_fields}}


data = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)
managers = st.sampled_from(["m1", "m2", "m3"])


@settings(deadline=None)
@given(st.lists(st.tuples(data, managers), min_size=1, max_size=6))
def test_after_updates_every_field_has_exactly_one_manager(writes: list[tuple[Document, str]]) -> None:
    document: Document | None = None
    for content, manager in writes:
        document = write(document, config_map(content, labels={"always": "1"}), manager)
    assert document is not None
    sets = [parse(e["fieldsV1"]) for e in document["metadata"]["managedFields"]]
    union = FieldSet({})
    for fields in sets:
        assert not union & fields
        union |= fields
    leaves = {"metadata": {"labels": {"always": "1"}}, "data": document["data"]}
    assert union.covers(field_set(leaves, message_of("v1", "ConfigMap")))


labels = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=2)
uids = st.lists(st.sampled_from("uvw"), unique=True, max_size=2)


@settings(deadline=None)
@given(st.lists(st.tuples(data, labels, uids, managers, st.sampled_from(["", "status"])), min_size=1, max_size=6))
def test_what_is_stored_is_read_as_if_a_client_had_sent_it(
    writes: list[tuple[Document, Document, list[str], str, str]],
) -> None:
    document: Document | None = None
    for content, labelled, owned_by, manager, subresource in writes:
        owner_references = [{"uid": uid, "name": uid} for uid in owned_by]
        new = config_map(content, labels=labelled, ownerReferences=owner_references)
        document = write(document, new, manager, subresource=subresource)
        raw = document["metadata"].get("managedFields", [])
        strict, trusted = decode(raw), stored(document)
        assert [(e.key, e.fields, e.time) for e in strict] == [(e.key, e.fields, e.time) for e in trusted]
        assert repr(encode(strict)) == repr(encode(trusted)) == repr(raw), "to the order of the keys"


def test_an_entry_that_lost_nothing_is_not_encoded_again() -> None:
    created = write(None, config_map({"a": "1"}), "m1")
    changed = write(created, config_map({"a": "1"}, labels={"l": "1"}), "m2")
    assert changed["metadata"]["managedFields"][0] is created["metadata"]["managedFields"][0]


def test_a_list_of_very_many_managers_is_refused() -> None:
    entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    many = [{**entry, "manager": str(i)} for i in range(MAX_SENT_ENTRIES + 1)]
    assert len(decode(many[:-1])) == MAX_SENT_ENTRIES
    with pytest.raises(BadRequest, match="limit is 1000"):
        decode(many)
