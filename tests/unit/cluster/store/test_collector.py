from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from devlet.cluster.client import Cluster, DeleteOptions, MergePatch, Propagation
from devlet.cluster.store.collector import Collector, Delete, DropFinalizer, KeepOwners, Step, decide
from devlet.cluster.store.deletion import FOREGROUND, ORPHAN
from devlet.cluster.store.owners import Item
from devlet.cluster.store.records import Record
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.errors import NotFound
from devlet.objects.kinds import CONFIG_MAPS
from tests.support.cluster_contract.reading import eventually_gone, exists
from tests.support.cluster_contract.specimens import config_map, owner_reference

BACKGROUND = Delete(Propagation.BACKGROUND)


def reference(uid: str, *, block: bool = False) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, "blockOwnerDeletion": block}


def record(
    uid: str = "me", *owners: str, finalizers: tuple[str, ...] = (), going: bool = False, block: bool = False
) -> Record:
    metadata: dict[str, Any] = {"name": uid, "uid": uid, "finalizers": finalizers}
    metadata["ownerReferences"] = [reference(owner, block=block) for owner in owners]
    if going:
        metadata["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    return Record(("ns", uid), 1, msgspec.json.encode({"metadata": metadata}))


def keep(*uids: str) -> KeepOwners:
    return KeepOwners(frozenset(uids))


LIVING = record("a")
WAITING = record("a", finalizers=(FOREGROUND,), going=True)
ORPHANING = record("a", finalizers=(ORPHAN,), going=True)
HELD = record("a", finalizers=("example.com/hold",), going=True)
BLOCKED = record("b", "me", block=True)


@pytest.mark.parametrize(
    ("item", "owners", "dependents", "step"),
    [
        # no owners: nothing to do
        (record(), {}, [], None),
        (record(), {}, [record("b", "me")], None),
        # living owners keep it, one is enough
        (record("me", "a"), {"a": LIVING}, [], None),
        (record("me", "a"), {"a": HELD}, [], None),
        (record("me", "a", "z"), {"a": LIVING, "z": None}, [], keep("a")),
        # an owner of a kind that is not known may well live
        (record("me", "x"), {}, [], None),
        (record("me", "x", "z"), {"z": None}, [], keep("x")),
        # absent owners
        (record("me", "z"), {"z": None}, [], BACKGROUND),
        (record("me", "y", "z"), {"y": None, "z": None}, [BLOCKED], BACKGROUND),
        # an owner that waits for its dependents
        (record("me", "a"), {"a": WAITING}, [], BACKGROUND),
        (record("me", "a", block=True), {"a": WAITING}, [BLOCKED], Delete(Propagation.FOREGROUND)),
        (record("me", "a", "c"), {"a": WAITING, "c": record("c")}, [], keep("c")),
        (record("me", "a", "z"), {"a": WAITING, "z": None}, [], BACKGROUND),
        # a ring: the dependent waits for us
        (
            record("me", "a", block=True),
            {"a": WAITING},
            [record("a", "me", finalizers=(FOREGROUND,), going=True)],
            BACKGROUND,
        ),
        # an owner that orphans
        (record("me", "a"), {"a": ORPHANING}, [], keep()),
        (record("me", "a", "c"), {"a": ORPHANING, "c": record("c")}, [], keep("c")),
        (record("me", "a", going=True), {"a": ORPHANING}, [], keep()),
        # what is going already is left to go
        (record("me", "z", going=True), {"z": None}, [], None),
        (record("me", "a", going=True), {"a": WAITING}, [], None),
        # as an owner
        (record(finalizers=(FOREGROUND,), going=True), {}, [], DropFinalizer(FOREGROUND)),
        (record(finalizers=(FOREGROUND,), going=True), {}, [record("b", "me")], DropFinalizer(FOREGROUND)),
        (record(finalizers=(FOREGROUND,), going=True), {}, [BLOCKED], None),
        (record(finalizers=(ORPHAN,), going=True), {}, [], DropFinalizer(ORPHAN)),
        (record(finalizers=(ORPHAN,), going=True), {}, [record("b", "me")], None),
        (record(finalizers=(FOREGROUND,)), {}, [], None),
    ],
)
def test_what_has_to_happen(
    item: Record, owners: dict[str, Record | None], dependents: list[Record], step: Step | None
) -> None:
    assert decide(item, owners, dependents) == step


@pytest.mark.anyio
async def test_what_was_left_before_a_restart_is_collected_after_it(path: Path) -> None:
    async with open_store(path, Settings(collect_garbage=False)) as store:
        owner = await store.create(CONFIG_MAPS, config_map("owner"), "default")
        references = [owner_reference("v1", "ConfigMap", owner, blockOwnerDeletion=True)]
        await store.create(CONFIG_MAPS, config_map("child", ownerReferences=references), "default")
        waiting = await store.create(CONFIG_MAPS, config_map("waiting"), "default")
        references = [owner_reference("v1", "ConfigMap", waiting, blockOwnerDeletion=True)]
        await store.create(CONFIG_MAPS, config_map("blocking", ownerReferences=references), "default")
        await store.delete(CONFIG_MAPS, "owner", "default")
        await store.delete(CONFIG_MAPS, "waiting", "default", DeleteOptions(propagation=Propagation.FOREGROUND))
        assert await exists(store, CONFIG_MAPS, "child", "default")
    async with open_store(path) as store:
        for name in ("child", "blocking", "waiting"):
            await eventually_gone(store, CONFIG_MAPS, name, "default")


@pytest.mark.anyio
async def test_without_a_collector_finalizers_wait(path: Path) -> None:
    async with open_store(path, Settings(collect_garbage=False)) as store:
        await store.create(CONFIG_MAPS, config_map("a"), "default")
        await store.delete(CONFIG_MAPS, "a", "default", DeleteOptions(propagation=Propagation.FOREGROUND))
        assert (await store.get(CONFIG_MAPS, "a", "default"))["metadata"]["finalizers"] == [FOREGROUND]


@pytest.mark.anyio
async def test_many_dependents_go_while_others_change_them(store: Store) -> None:
    owner = await store.create(CONFIG_MAPS, config_map("owner"), "default")
    references = [owner_reference("v1", "ConfigMap", owner)]
    for i in range(30):
        await store.create(CONFIG_MAPS, config_map(f"c{i}", ownerReferences=references), "default")

    async def disturb(cluster: Cluster, i: int) -> None:
        for n in range(5):
            try:
                await cluster.patch(CONFIG_MAPS, f"c{i}", MergePatch({"data": {"n": str(n)}}), "default")
            except NotFound:
                return

    async with anyio.create_task_group() as tasks:
        await store.delete(CONFIG_MAPS, "owner", "default")
        for i in range(30):
            tasks.start_soon(disturb, store, i)
    for i in range(30):
        await eventually_gone(store, CONFIG_MAPS, f"c{i}", "default")


@pytest.mark.anyio
async def test_changes_that_decide_nothing_are_not_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    async def collect(_: Collector, item: Item) -> None:
        looked_at.append(item[1][1])

    owner = await store.create(CONFIG_MAPS, config_map("owner"), "default")
    references = [owner_reference("v1", "ConfigMap", owner)]
    await store.create(CONFIG_MAPS, config_map("child", ownerReferences=references), "default")
    await anyio.wait_all_tasks_blocked()
    monkeypatch.setattr(Collector, "_collect", collect)
    for name in ("owner", "child"):
        await store.patch(CONFIG_MAPS, name, MergePatch({"data": {"n": "1"}}), "default")
    await anyio.wait_all_tasks_blocked()
    assert looked_at == []
    await store.patch(CONFIG_MAPS, "owner", MergePatch({"metadata": {"finalizers": ["example.com/f"]}}), "default")
    await anyio.wait_all_tasks_blocked()
    assert sorted(looked_at) == ["child", "owner"]
