"""What the contract cannot see: restarts, disks, limits, and a model that every sequence of writes is compared with."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devlet.cluster.client import (
    ApplyPatch,
    DeleteOptions,
    EventType,
    JsonPatch,
    ListOptions,
    MergePatch,
    StrategicMergePatch,
    VersionMatch,
    WatchOptions,
    WriteOptions,
)
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.errors import (
    AlreadyExists,
    Conflict,
    InvalidObject,
    NotFound,
    StateCorrupt,
    TooLarge,
    Unavailable,
    UnsupportedPatch,
)
from devlet.objects.documents import Document
from devlet.objects.kinds import BUILT_IN, CONFIG_MAPS, NODES, PODS, Kind, Resource
from devlet.testing.waiting import deadline, until
from tests.support.cluster_contract.specimens import config_map, named, pod, version
from tests.support.small_disk import in_mount_namespace

WRITER = Path(__file__).with_name("full_disk_writer.py")
THING = Kind("Thing", "things", ("example.com/v1",), subresources=("status",))
THINGS = Resource(THING, "example.com/v1")


@pytest.mark.anyio
async def test_objects_versions_and_uids_survive_a_restart(path: Path) -> None:
    async with open_store(path) as store:
        created = await store.create(CONFIG_MAPS, config_map("a"), "default")
        await store.create(PODS, pod("p"), "default")
        before = store.version
    async with open_store(path) as store:
        assert await store.get(CONFIG_MAPS, "a", "default") == created
        assert store.version == before
        assert version(await store.create(CONFIG_MAPS, config_map("b"), "default")) > before


@pytest.mark.parametrize("damage", [b"", b"not a database", b"SQLite format 3\x00" + bytes(100)])
def test_a_file_that_is_not_ours_is_refused_and_stays(path: Path, damage: bytes) -> None:
    async def open_and_close() -> None:
        async with open_store(path):
            pass

    path.write_bytes(damage)
    with pytest.raises(StateCorrupt, match=str(path)):
        anyio.run(open_and_close)
    assert path.read_bytes() == damage


@pytest.mark.anyio
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
async def test_a_removed_file_is_a_problem_before_anything_is_written_until_it_is_back(path: Path, suffix: str) -> None:
    async with open_store(path) as store:
        file = next(each for each in store.files if each.name == path.name + suffix)
        store.check_files()
        assert store.problem() is None
        file.rename(path.with_name("away"))
        store.check_files()
        assert f"{file} was removed or replaced while devlet runs" in str(store.problem())
        path.with_name("away").rename(file)

        async def problem() -> str | None:
            return store.problem()

        await until(problem, lambda found: found is None)


@pytest.mark.anyio
async def test_a_frozen_store_refuses_every_write_and_what_was_acknowledged_is_there_afterwards(path: Path) -> None:
    async with open_store(path) as store:
        await store.create(CONFIG_MAPS, config_map("before"), "default")
        store.freeze()
        for _ in range(2):  # a refusal is no reason to try the next one
            with pytest.raises(Unavailable):
                await store.create(CONFIG_MAPS, config_map("after"), "default")
        assert await store.get(CONFIG_MAPS, "before", "default")
    async with open_store(path) as store:
        assert await store.get(CONFIG_MAPS, "before", "default")
        with pytest.raises(NotFound):
            await store.get(CONFIG_MAPS, "after", "default")


@pytest.mark.anyio
async def test_an_object_has_a_limit(path: Path) -> None:
    async with open_store(path, Settings(max_object_bytes=10_000)) as store:
        with pytest.raises(TooLarge, match='configmaps "big"'):
            await store.create(CONFIG_MAPS, config_map("big", data={"k": "x" * 10_000}), "default")
        await store.create(CONFIG_MAPS, config_map("a"), "default")
        with pytest.raises(TooLarge):
            await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "x" * 10_000}}), "default")
        assert (await store.get(CONFIG_MAPS, "a", "default"))["data"] == {"k": "v"}


@pytest.mark.anyio
async def test_kinds_may_be_added_to_the_built_in_ones(path: Path) -> None:
    async with open_store(path, kinds=[*BUILT_IN, THING]) as store:
        made = await store.create(THINGS, {**named("t"), "spec": {"any": [1]}, "status": {"mine": 1}}, "default")
        assert (made["spec"], made["status"]) == ({"any": [1]}, {})
        patched = await store.patch(THINGS, "t", MergePatch({"spec": {"any": None, "n": 1}}), "default")
        assert patched["spec"] == {"n": 1}
        with pytest.raises(UnsupportedPatch):
            await store.patch(THINGS, "t", StrategicMergePatch({"spec": {}}), "default")
        config = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"m": 2}}
        applied = await store.patch(THINGS, "t", ApplyPatch(config), "default", options=WriteOptions(field_manager="m"))
        assert applied["spec"] == {"n": 1, "m": 2}
        with pytest.raises(AlreadyExists):
            await store.create(THINGS, named("t"), "default")
        with pytest.raises(InvalidObject):
            await store.create(THINGS, {}, "default")


@pytest.mark.anyio
async def test_a_patch_that_does_not_fit_is_a_mistake_of_the_request_and_not_of_the_object(store: Store) -> None:
    await store.create(CONFIG_MAPS, config_map("a"), "default")
    with pytest.raises(InvalidObject, match=r'^the server rejected our request .*: remove "/data/no": ') as refused:
        await store.patch(CONFIG_MAPS, "a", JsonPatch([{"op": "remove", "path": "/data/no"}]), "default")
    assert (refused.value.kind, refused.value.name, refused.value.causes) == ("", "", ())


@pytest.mark.anyio
async def test_a_client_that_polls_does_not_block_others(store: Store) -> None:
    """Neither reads nor refusals may keep the event loop to themselves."""
    created = await store.create(CONFIG_MAPS, config_map("a"), "default")

    async def poll() -> None:
        while (await store.get(CONFIG_MAPS, "a", "default"))["data"] == {"k": "v"}:
            pass

    async def insist() -> None:
        while True:
            try:
                await store.update(
                    CONFIG_MAPS, {**created, "metadata": {**created["metadata"], "resourceVersion": "1"}}
                )
            except Conflict:
                continue

    with deadline():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(insist)
            async with anyio.create_task_group() as polls:
                polls.start_soon(poll)
                await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), "default")
            tasks.cancel_scope.cancel()
    assert (await store.get(CONFIG_MAPS, "a", "default"))["data"] == {"k": "w"}


@pytest.mark.anyio
async def test_others_write_while_a_large_collection_is_deleted(store: Store) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(500):
            document = {"metadata": {"name": f"c{number}"}}
            tasks.start_soon(store.create, CONFIG_MAPS, document, "default")
    written: list[int] = []

    async def write() -> None:
        created = await store.create(CONFIG_MAPS, {"metadata": {"name": "c499"}}, "kube-system")
        written.append(int(created["metadata"]["resourceVersion"]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.delete_collection, CONFIG_MAPS, "default")
        tasks.start_soon(write)
    assert written[0] < store.version - 200
    assert list(store.table(CONFIG_MAPS).keys()) == [("kube-system", "c499")]


async def test_a_refused_client_can_read_the_reason_of_the_refusal(store: Store) -> None:
    """A refusal may rest on a write that is on its way to the disk; it comes when that write can be read."""
    seen: list[Document] = []

    async def second() -> None:
        try:
            await store.create(CONFIG_MAPS, config_map("a"), "default")
        except AlreadyExists:
            seen.append(await store.get(CONFIG_MAPS, "a", "default"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.create, CONFIG_MAPS, config_map("a"), "default")
        tasks.start_soon(second)
    assert len(seen) == 1


@pytest.mark.anyio
async def test_a_stray_namespace_on_a_cluster_scoped_object_is_dropped(store: Store) -> None:
    made = await store.create(NODES, {"metadata": {"name": "n", "namespace": "stray"}})
    assert "namespace" not in made["metadata"]


@pytest.mark.anyio
async def test_generated_names_avoid_those_that_are_taken(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    suffixes = iter(["aaaaa", "aaaaa", "bbbbb", *["aaaaa"] * 8])
    monkeypatch.setattr("devlet.cluster.store.randomness.Randomness.suffix", lambda _: next(suffixes))
    made = [
        (await store.create(CONFIG_MAPS, {"metadata": {"generateName": "g-"}}, "default"))["metadata"]["name"]
        for _ in range(2)
    ]
    assert made == ["g-aaaaa", "g-bbbbb"]
    with pytest.raises(AlreadyExists):
        await store.create(CONFIG_MAPS, {"metadata": {"generateName": "g-"}}, "default")


@pytest.mark.skipif(in_mount_namespace() is None, reason="no mount namespace for a small disk")
def test_a_full_disk_refuses_writes_and_loses_none(root: Path) -> None:
    script = 'mount -t tmpfs -o size=4m tmpfs "$1" && exec "$2" "$3" "$1"'
    command = [*(in_mount_namespace() or []), "sh", "-c", script, "sh", str(root), sys.executable, str(WRITER)]
    run = subprocess.run(command, capture_output=True, env={**os.environ, "TMPDIR": "/tmp"}, timeout=120)
    assert run.returncode == 0, run.stderr.decode()
    facts: dict[str, list[str]] = msgspec.json.decode(run.stdout)
    assert set(facts["errors"]) == {"Unavailable"}
    assert len(facts["acknowledged"]) > 20
    assert set(facts["readable"]) == set(facts["acknowledged"])
    assert facts["after"] == [""] * 5
    assert set(facts["survived"]) == {*facts["acknowledged"], *(f"after-{i}" for i in range(5))}


@dataclass
class Model:
    """The store as a dict, with every state it was ever in."""

    objects: dict[str, Document] = field(default_factory=dict)
    states: dict[int, dict[str, Document]] = field(default_factory=dict)
    events: list[tuple[EventType, str, int]] = field(default_factory=list)

    def wrote(self, type_: EventType, name: str, version: int) -> None:
        assert not self.events or version > self.events[-1][2]
        self.events.append((type_, name, version))
        self.states[version] = dict(self.objects)


NAMES = ["a", "b", "c"]
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from(NAMES), st.sampled_from("xyz")),
        st.tuples(st.just("patch"), st.sampled_from(NAMES), st.sampled_from("xyz")),
        st.tuples(st.just("update"), st.sampled_from(NAMES), st.sampled_from("xyz")),
        st.tuples(st.just("hold"), st.sampled_from(NAMES), st.sampled_from(["", "f"])),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just("")),
        st.just(("reopen", "", "")),
    ),
    max_size=25,
)


class Run:
    """Does each operation to the store and to the model, and compares the answers."""

    def __init__(self, store: Store, model: Model) -> None:
        self.store = store
        self.model = model

    async def do(self, verb: str, name: str, value: str) -> None:
        old = self.model.objects.get(name)
        if verb == "create":
            if old is not None:
                with pytest.raises(AlreadyExists):
                    await self.store.create(CONFIG_MAPS, config_map(name), "default")
                return
            made = await self.store.create(CONFIG_MAPS, config_map(name, data={"k": value}), "default")
            self.changed(EventType.ADDED, name, made)
        elif old is None:
            with pytest.raises(NotFound):
                await self.write(verb, name, value, config_map(name, namespace="default"))
        else:
            await self.change(verb, name, value, old)

    async def change(self, verb: str, name: str, value: str, old: Document) -> None:
        new = await self.write(verb, name, value, old)
        metadata = old["metadata"]
        if verb == "delete":
            if metadata.get("finalizers"):
                self.unchanged_or(EventType.MODIFIED, name, old, new)
            else:
                events = self.model.events
                del self.model.objects[name]
                current = await self.store.list(CONFIG_MAPS, "default")
                self.model.wrote(EventType.DELETED, name, max(int(current.resource_version), events[-1][2] + 1))
        elif verb == "hold" and not value and "deletionTimestamp" in metadata:
            del self.model.objects[name]
            self.model.wrote(EventType.DELETED, name, version(new))
        else:
            self.unchanged_or(EventType.MODIFIED, name, old, new)

    async def write(self, verb: str, name: str, value: str, old: Document) -> Document:
        if verb == "patch":
            return await self.store.patch(CONFIG_MAPS, name, MergePatch({"data": {"k": value}}), "default")
        if verb == "update":
            return await self.store.update(CONFIG_MAPS, {**old, "data": {"k": value}})
        if verb == "hold":
            going = "deletionTimestamp" in old["metadata"]
            finalizers = (
                ["example.com/f"] if value and not going else (old["metadata"].get("finalizers") if value else None)
            )
            return await self.store.patch(
                CONFIG_MAPS, name, MergePatch({"metadata": {"finalizers": finalizers}}), "default"
            )
        return await self.store.delete(CONFIG_MAPS, name, "default", DeleteOptions())

    def unchanged_or(self, type_: EventType, name: str, old: Document, new: Document) -> None:
        if version(new) == version(old):
            assert new == old
        else:
            self.changed(type_, name, new)

    def changed(self, type_: EventType, name: str, new: Document) -> None:
        self.model.objects[name] = new
        self.model.wrote(type_, name, version(new))

    async def compare(self, start: str) -> None:
        page = await self.store.list(CONFIG_MAPS, "default")
        assert {d["metadata"]["name"]: d for d in page.items} == self.model.objects
        await self.compare_states()
        await self.compare_events(start)

    async def compare_states(self) -> None:
        for version_, state in self.model.states.items():
            options = ListOptions(resource_version=str(version_), version_match=VersionMatch.EXACT)
            page = await self.store.list(CONFIG_MAPS, "default", options)
            assert {d["metadata"]["name"]: d for d in page.items} == state

    async def compare_events(self, start: str) -> None:
        seen: list[tuple[EventType, str, int]] = []
        options = WatchOptions(resource_version=start)
        async with self.store.watch(CONFIG_MAPS, "default", options) as events:
            for _ in self.model.events:
                with deadline():
                    event = await anext(events)
                seen.append((event.type, event.object["metadata"]["name"], version(event.object)))
        assert seen == self.model.events


async def play(operations: list[tuple[str, str, str]]) -> Model:
    """Raises AssertionError where store and model differ."""
    model, pending = Model(), list(operations)
    start = ""
    with tempfile.TemporaryDirectory(prefix="dv") as root:
        while True:
            async with open_store(Path(root) / "cluster.db", Settings(compact_every=1000)) as store:
                start = start or str(store.version)
                run = Run(store, model)
                while pending and (operation := pending.pop(0))[0] != "reopen":
                    await run.do(*operation)
                await run.compare(start)
            if not pending:
                return model


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OPERATIONS)
def test_the_store_is_a_dict_with_a_memory(operations: list[Any]) -> None:
    model = anyio.run(play, operations)
    assert len(model.events) <= len(operations)


@pytest.mark.anyio
async def test_fields_that_admission_adds_to_a_pod_have_no_manager(store: Store) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = await store.create(PODS, pod, "default")
    (entry,) = made["metadata"]["managedFields"]
    owned = entry["fieldsV1"]["f:spec"]
    assert "f:containers" in owned
    assert not owned.keys() & {"f:serviceAccountName", "f:serviceAccount", "f:priority", "f:tolerations"}


@pytest.mark.anyio
async def test_an_empty_list_of_managed_fields_clears_it(store: Store) -> None:
    await store.create(CONFIG_MAPS, config_map("a"), "default")
    cleared = config_map("a")
    cleared["metadata"] |= {"namespace": "default", "managedFields": []}
    assert "managedFields" not in (await store.update(CONFIG_MAPS, cleared))["metadata"]
