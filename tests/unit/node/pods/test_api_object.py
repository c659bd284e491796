from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import DeleteOptions, MergePatch
from devlet.cluster.events import Recorder
from devlet.cluster.store.store import Store, open_store
from devlet.errors import Conflict, NotFound
from devlet.kit.parts import running
from devlet.node.pods.api_object import ApiObject
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName
from devlet.objects.kinds import EVENTS, PODS
from devlet.testing.fake_clock import FakeClock
from tests.support.cluster_contract.specimens import pod

pytestmark = pytest.mark.anyio

RUNNING = {"phase": "Running"}


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


def recorder(store: Store) -> Recorder:
    return Recorder(store, "devlet", "n1", FakeClock())


async def made(store: Store, name: str = "p", **metadata: Any) -> ApiObject:
    document = await store.create(PODS, pod(name, spec={"nodeName": "n1"}, **metadata), "default")
    return ApiObject(store, recorder(store), document)


async def stored(store: Store, name: str = "p") -> Document:
    return await store.get(PODS, name, "default")


async def test_a_status_is_written_and_known_at_once(store: Store) -> None:
    one = await made(store)
    await one.write_status(RUNNING)
    assert one.pod.status.phase == "Running" == (await stored(store))["status"]["phase"]
    version = one.document["metadata"]["resourceVersion"]
    await one.write_status(RUNNING)
    assert (await stored(store))["metadata"]["resourceVersion"] == version


async def test_conditions_of_others_are_kept(store: Store) -> None:
    one = await made(store)
    theirs = {"type": "example.com/checked", "status": "True"}
    await store.patch(PODS, "p", MergePatch({"status": {"conditions": [theirs]}}), "default", subresource="status")
    await one.write_status({"conditions": [{"type": "Ready", "status": "True"}]})
    types = {each["type"] for each in (await stored(store))["status"]["conditions"]}
    assert types == {"example.com/checked", "Ready"}


async def test_an_older_state_that_arrives_later_from_the_watch_is_ignored(store: Store) -> None:
    one = await made(store)
    before = one.document
    await one.write_status(RUNNING)
    one.see(before)
    assert one.pod.status.phase == "Running"


async def test_a_pod_that_the_cluster_does_not_have_is_gone(store: Store) -> None:
    for write in ("status", "delete"):
        one = await made(store)
        await store.delete(PODS, "p", "default", DeleteOptions(0))
        await (one.write_status(RUNNING) if write == "status" else one.delete())
        assert one.is_gone


async def test_a_later_pod_of_the_same_name_is_not_touched(store: Store) -> None:
    for write in ("status", "delete"):
        one = await made(store)
        await store.delete(PODS, "p", "default", DeleteOptions(0))
        await made(store)
        await (one.write_status(RUNNING) if write == "status" else one.delete())
        assert one.is_gone and (await stored(store))["status"]["phase"] == "Pending"
        await store.delete(PODS, "p", "default", DeleteOptions(0))


async def test_delete_removes_the_pod_from_the_cluster(store: Store) -> None:
    one = await made(store)
    await one.delete()
    with pytest.raises(NotFound):
        await stored(store)


class Busy:
    """A cluster in which another writer is always faster."""

    def __init__(self, store: Store) -> None:
        self.get = store.get

    async def patch(self, *arguments: Any, **options: Any) -> Document:
        raise Conflict("the object has been modified")

    async def delete(self, *arguments: Any, **options: Any) -> Document:
        raise Conflict("the object has been modified")


async def test_a_conflict_is_raised_so_that_the_caller_retries(store: Store) -> None:
    document = await store.create(PODS, pod("p"), "default")
    await store.patch(PODS, "p", MergePatch({"metadata": {"labels": {"a": "b"}}}), "default")
    busy: Any = Busy(store)
    one = ApiObject(busy, recorder(store), document)
    with pytest.raises(Conflict):
        await one.write_status(RUNNING)
    assert not one.is_gone and one.pod.metadata.labels == {"a": "b"}
    with pytest.raises(Conflict):
        await one.delete()


async def test_events_are_about_the_pod_or_one_of_its_containers(store: Store) -> None:
    document = await store.create(PODS, pod("p"), "default")
    events = recorder(store)
    one = ApiObject(store, events, document)
    async with running(events.run):
        one.record("Normal", "About", "the pod")
        one.record("Normal", "About", "a container", ContainerName("main"))
    found = {each["message"]: each["involvedObject"] for each in (await store.list(EVENTS)).items}
    assert found["the pod"]["uid"] == one.pod.uid and "fieldPath" not in found["the pod"]
    assert found["a container"]["fieldPath"] == "spec.containers{main}"
