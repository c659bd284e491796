"""Writes that are prepared in a thread: what they rest on may change meanwhile."""

import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from devlet.cluster.client import ApplyPatch, MergePatch
from devlet.cluster.served_store import GuardedWrite
from devlet.cluster.store.drafts import MAX_DRAFTS
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store
from devlet.errors import AlreadyExists, Conflict, Forbidden, InvalidObject, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, NAMESPACES
from devlet.objects.patches import merge_patch

pytestmark = pytest.mark.anyio


def document(name: str = "a", **data: str) -> Document:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


async def in_thread(work: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(work)


IN_THREAD = GuardedWrite(field_manager="tester", run=in_thread)


class Interrupted:
    """Runs computations in a thread; while the first so many are done, somebody else writes the object."""

    def __init__(self, store: Store, times: int) -> None:
        self._store = store
        self._times = times
        self.runs = 0

    async def __call__(self, work: Callable[[], Any]) -> Any:
        self.runs += 1
        done = await in_thread(work)
        if self.runs <= self._times:
            await self._store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"other": str(self.runs)}}), "default")
        return done


async def test_all_writes_can_be_prepared_in_a_thread(store: Store) -> None:
    created = await store.create(CONFIG_MAPS, document(x="1"), "default", options=IN_THREAD)
    changed = {**created, "data": {"x": "2"}}
    updated = await store.update(CONFIG_MAPS, changed, options=IN_THREAD)
    patched = await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"y": "3"}}), "default", options=IN_THREAD)
    assert (updated["data"], patched["data"]) == ({"x": "2"}, {"x": "2", "y": "3"})
    applied = ApplyPatch(document(z="4"), force=False)
    assert (await store.patch(CONFIG_MAPS, "a", applied, "default", options=IN_THREAD))["data"]["z"] == "4"
    assert await store.get(CONFIG_MAPS, "a", "default") == await store.patch(
        CONFIG_MAPS, "a", MergePatch({}), "default", options=IN_THREAD
    )


async def test_a_patch_is_made_again_of_what_another_writer_stored_meanwhile(store: Store) -> None:
    await store.create(CONFIG_MAPS, document(x="1"), "default")
    run = Interrupted(store, 2)
    options = GuardedWrite(run=run)
    patched = await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"y": "2"}}), "default", options=options)
    assert (patched["data"], run.runs) == ({"x": "1", "other": "2", "y": "2"}, 3)


async def test_an_update_with_a_version_loses_against_a_writer_that_was_faster(store: Store) -> None:
    created = await store.create(CONFIG_MAPS, document(x="1"), "default")
    changed = {**created, "data": {"x": "2"}}
    with pytest.raises(Conflict, match="the object has been modified"):
        await store.update(CONFIG_MAPS, changed, options=GuardedWrite(run=Interrupted(store, 1)))
    assert (await store.get(CONFIG_MAPS, "a", "default"))["data"] == {"x": "1", "other": "1"}


async def test_an_update_of_a_document_in_shape_keeps_its_version_when_it_is_tried_again(store: Store) -> None:
    created = await store.create(CONFIG_MAPS, document(x="1"), "default")
    options = GuardedWrite(shaped=True, run=Interrupted(store, 1))
    with pytest.raises(Conflict):
        await store.update(CONFIG_MAPS, {**created, "data": {"x": "2"}}, options=options)


async def test_of_two_writers_that_create_the_same_object_one_gets_already_exists(store: Store) -> None:
    async def run(work: Callable[[], Any]) -> Any:
        done = await in_thread(work)
        if not await exists():
            await store.create(CONFIG_MAPS, document(x="first"), "default")
        return done

    async def exists() -> bool:
        return store.exists(CONFIG_MAPS, "a", "default")

    with pytest.raises(AlreadyExists):
        await store.create(CONFIG_MAPS, document(x="second"), "default", options=GuardedWrite(run=run))
    assert (await store.get(CONFIG_MAPS, "a", "default"))["data"] == {"x": "first"}


async def test_an_object_that_others_keep_changing_is_a_conflict(store: Store) -> None:
    await store.create(CONFIG_MAPS, document(), "default")
    run = Interrupted(store, MAX_DRAFTS)
    with pytest.raises(Conflict, match="keeps being modified"):
        await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"y": "2"}}), "default", options=GuardedWrite(run=run))
    assert run.runs == MAX_DRAFTS


async def test_a_namespace_that_vanishes_meanwhile_is_noticed(store: Store) -> None:
    await store.create(NAMESPACES, {"metadata": {"name": "other"}})

    async def run(work: Callable[[], Any]) -> Any:
        done = await in_thread(work)
        await store.delete(NAMESPACES, "other")
        return done

    with pytest.raises((Forbidden, NotFound)):
        await store.create(CONFIG_MAPS, document(), "other", options=GuardedWrite(run=run))


async def test_guards_are_asked_in_the_event_loop_before_anything_is_written(store: Store) -> None:
    threads: list[int] = []

    def refuse(new: Document | None, _: Document | None) -> None:
        threads.append(threading.get_ident())
        raise Forbidden(f"not {new and new['metadata']['name']}")

    with pytest.raises(Forbidden, match="not a"):
        await store.create(CONFIG_MAPS, document(), "default", options=GuardedWrite(guard=refuse, run=in_thread))
    assert threads == [threading.get_ident()]
    assert not store.exists(CONFIG_MAPS, "a", "default")


async def test_refusals_and_dry_runs_write_nothing(store: Store) -> None:
    with pytest.raises(InvalidObject):
        await store.create(CONFIG_MAPS, document(name="not a name"), "default", options=IN_THREAD)
    dry = GuardedWrite(dry_run=True, run=in_thread)
    assert (await store.create(CONFIG_MAPS, document(x="1"), "default", options=dry))["data"] == {"x": "1"}
    assert not store.exists(CONFIG_MAPS, "a", "default")


async def test_changes_of_large_objects_are_prepared_in_a_thread_for_every_client(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = "x" * Settings().large_object_bytes
    await store.create(CONFIG_MAPS, document(x=large), "default")
    threads: list[int] = []
    real = merge_patch.apply

    def seen(live: Document, patch: Any) -> Any:
        threads.append(threading.get_ident())
        return real(live, patch)

    monkeypatch.setattr(merge_patch, "apply", seen)
    patched = await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"y": "2"}}), "default")
    assert patched["data"] == {"x": large, "y": "2"}
    assert threads and threads[0] != threading.get_ident()
