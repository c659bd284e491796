"""Writes on their way; what they look like when they are there is in test_store and in the contract."""

import json

import pytest

from devlet.cluster.client import ApplyPatch, DeleteOptions, MergePatch, WriteOptions
from devlet.cluster.store.ledger import Ledger
from devlet.cluster.store.records import Record
from devlet.cluster.store.staging import Staging, key_of
from devlet.errors import AlreadyExists, BadRequest, Conflict, NotFound
from devlet.objects.documents import Document
from devlet.objects.kind_rules import Rules
from devlet.objects.kinds import CONFIG_MAPS, NAMESPACES, Kind, Resource
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

KEY = ("default", "a")
OPTIONS = WriteOptions(field_manager="tester")


@pytest.fixture
def staging(ledger: Ledger, clock: FakeClock) -> Staging:
    staging = Staging(ledger, clock, Rules())
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}
    staging.create(NAMESPACES, namespace, "", OPTIONS)
    return staging


def document(**data: str) -> Document:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": data}


async def test_the_next_write_builds_on_one_that_is_not_durable_yet(staging: Staging) -> None:
    first, created = staging.create(CONFIG_MAPS, document(k="1"), "default", OPTIONS)
    second, patched = staging.patch(CONFIG_MAPS, KEY, MergePatch({"data": {"m": "2"}}), "", OPTIONS)
    assert key_of(first) == KEY and second["data"] == {"k": "1", "m": "2"}
    assert created and patched and patched.record.version > created.record.version
    await patched.durable()


@pytest.mark.parametrize("broken", [{"data": 5}, {"metadata": {"labels": {"k": 5}}}])
async def test_an_object_with_a_value_of_the_wrong_type_can_be_replaced_and_deleted(
    staging: Staging, broken: Document
) -> None:
    record = restored(document() | broken)
    assert staging.stored(CONFIG_MAPS, record)["metadata"] == {
        "name": "a",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "5",
    }
    assert not record.checked
    new = document(k="2") | {"metadata": {"name": "a", "namespace": "default"}}
    replaced, written = staging.update(CONFIG_MAPS, new, record, "", OPTIONS)
    assert replaced["data"] == {"k": "2"} and written and written.record.checked
    _, deleted = staging.delete(CONFIG_MAPS, record, DeleteOptions())
    assert deleted and deleted.deleted


async def test_an_object_from_before_a_restart_is_checked_once(staging: Staging) -> None:
    record = restored(document(k="1"))
    assert staging.stored(CONFIG_MAPS, record)["data"] == {"k": "1"}
    assert record.checked


def restored(document: Document) -> Record:
    """As it is read from the disk."""
    metadata = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "5"}
    return Record(KEY, 5, json.dumps(document | {"metadata": metadata | document["metadata"]}).encode())


async def test_what_is_on_its_way_is_there_already_and_what_is_deleted_gone(staging: Staging) -> None:
    staging.create(CONFIG_MAPS, document(), "default", OPTIONS)
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        staging.create(CONFIG_MAPS, document(), "default", OPTIONS)
    _, deleted = staging.delete(CONFIG_MAPS, staging.existing(CONFIG_MAPS, KEY), DeleteOptions())
    with pytest.raises(NotFound):
        staging.existing(CONFIG_MAPS, KEY)
    assert deleted
    await deleted.durable()


async def test_an_update_without_a_change_and_a_dry_run_are_not_written(staging: Staging) -> None:
    dry = WriteOptions(field_manager="tester", dry_run=True)
    shown, pending = staging.create(CONFIG_MAPS, document(), "default", dry)
    assert pending is None and "resourceVersion" not in shown["metadata"]
    _, created = staging.create(CONFIG_MAPS, document(k="1"), "default", OPTIONS)
    same, pending = staging.patch(CONFIG_MAPS, KEY, MergePatch({"data": {"k": "1"}}), "", OPTIONS)
    assert pending is None and created and same["metadata"]["resourceVersion"] == str(created.record.version)
    await created.durable()


async def test_a_write_that_was_made_of_an_older_version_is_refused(staging: Staging) -> None:
    staging.create(CONFIG_MAPS, document(), "default", OPTIONS)
    old = document() | {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}}
    with pytest.raises(Conflict, match="the object has been modified"):
        staging.replacement(CONFIG_MAPS, old, "", OPTIONS)
    other = document() | {"metadata": {"name": "a", "namespace": "default", "uid": "another"}}
    with pytest.raises(Conflict, match="UID in precondition: another"):
        staging.replacement(CONFIG_MAPS, other, "", OPTIONS)


async def test_an_apply_makes_what_is_not_there_and_is_for_the_object_that_was_addressed(staging: Staging) -> None:
    made, pending = staging.patch(CONFIG_MAPS, KEY, ApplyPatch(document(k="1")), "", OPTIONS)
    assert made["metadata"]["managedFields"][0]["operation"] == "Apply" and pending
    with pytest.raises(BadRequest, match=r"the name of the object \(a\) does not match the name on the URL \(b\)"):
        staging.patch(CONFIG_MAPS, ("default", "b"), ApplyPatch(document()), "", OPTIONS)
    await pending.durable()


@pytest.mark.parametrize("subresources", [(), ("status",)], ids=["without the subresource", "with it"])
async def test_an_apply_sets_the_status_of_a_custom_resource_without_the_status_subresource(
    staging: Staging, subresources: tuple[str, ...]
) -> None:
    kind = Kind("Widget", "widgets", ("example.com/v1",), subresources=subresources)
    widget: Document = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "a"}}
    content: Document = {"spec": {"size": 1}, "status": {"phase": "Done"}}
    made, pending = staging.patch(Resource(kind, "example.com/v1"), KEY, ApplyPatch(widget | content), "", OPTIONS)
    (entry,) = made["metadata"]["managedFields"]
    assert ("f:status" in entry["fieldsV1"]) is (made.get("status") == content["status"]) is (not subresources)
    assert pending
    await pending.durable()
