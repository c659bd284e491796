from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from anyio.streams.memory import MemoryObjectReceiveStream

from devlet.cluster.client import Cluster, ListOptions, MergePatch, ObjectList, WatchEvent, WatchOptions
from devlet.cluster.informer import Changed, Informer
from devlet.cluster.quarantine import Quarantine
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.errors import Expired, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, PODS, Resource
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline
from tests.support.cluster_contract.specimens import config_map, pod

pytestmark = pytest.mark.anyio
QUICK = Backoff(0.001, 0.01)
Changes = MemoryObjectReceiveStream[Changed[Document]]


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


def informer(cluster: Cluster, **options: Any) -> Informer[Document]:
    return Informer(cluster, CONFIG_MAPS, lambda document: document, namespace="default", backoff=QUICK, **options)


def value(document: Document) -> Iterable[str]:
    return [document["data"]["k"]]


async def until(changes: Changes, name: str, k: str | None) -> list[tuple[str, str | None, str | None]]:
    """What was told up to the moment when the object has that value (None: is gone)."""
    told = []
    with deadline():
        async for change in changes:
            old = change.old["data"]["k"] if change.old else None
            new = change.new["data"]["k"] if change.new else None
            told.append((change.key[1], old, new))
            if (change.key[1], new) == (name, k):
                return told
    raise AssertionError("the stream ended")


async def put(store: Store, name: str, k: str) -> Document:
    patch = MergePatch({"data": {"k": k}})
    return await store.patch(CONFIG_MAPS, name, patch, "default")


async def test_it_is_complete_when_it_is_ready(store: Store) -> None:
    for name in ("a", "b"):
        await store.create(CONFIG_MAPS, config_map(name), "default")
    copy = informer(store)
    async with running(copy.run):
        assert sorted(d["metadata"]["name"] for d in copy.all()) == ["a", "b"]
        assert copy.get("a", "default") == await store.get(CONFIG_MAPS, "a", "default")
        assert copy.get("absent", "default") is None
        assert copy.version


async def test_it_follows_every_change_and_tells_of_it(store: Store) -> None:
    await store.create(CONFIG_MAPS, config_map("a", data={"k": "1"}), "default")
    copy = informer(store)
    async with running(copy.run), copy.changes() as changes:
        await put(store, "a", "2")
        await store.create(CONFIG_MAPS, config_map("b", data={"k": "1"}), "default")
        await store.delete(CONFIG_MAPS, "a", "default")
        assert await until(changes, "a", None) == [
            ("a", None, "1"),
            ("a", "1", "2"),
            ("b", None, "1"),
            ("a", "2", None),
        ]
        assert [d["metadata"]["name"] for d in copy.all()] == ["b"]


async def test_each_listener_hears_everything_from_where_it_begins(store: Store) -> None:
    copy = informer(store)
    async with running(copy.run):
        async with copy.changes() as first:
            await store.create(CONFIG_MAPS, config_map("a", data={"k": "1"}), "default")
            assert await until(first, "a", "1") == [("a", None, "1")]
            async with copy.changes() as second:
                await put(store, "a", "2")
                assert await until(second, "a", "2") == [("a", None, "1"), ("a", "1", "2")]
                assert await until(first, "a", "2") == [("a", "1", "2")]
        assert copy.get("a", "default") is not None


async def test_selectors_narrow_it(store: Store) -> None:
    await store.create(PODS, pod("mine", spec={"nodeName": "n1"}), "default")
    await store.create(PODS, pod("other", labels={"x": "y"}), "default")
    names = {}
    for key, options in {"field": {"field_selector": "spec.nodeName=n1"}, "label": {"label_selector": "x"}}.items():
        selected = Informer(store, PODS, lambda d: str(d["metadata"]["name"]), **options)  # type: ignore[arg-type]
        async with running(selected.run):
            names[key] = selected.all()
    assert names == {"field": ["mine"], "label": ["other"]}


async def test_indexes_follow_the_objects(store: Store) -> None:
    copy = informer(store, indexes={"value": value})
    async with running(copy.run), copy.changes() as changes:
        for name in ("b", "a"):
            await store.create(CONFIG_MAPS, config_map(name, data={"k": "1"}), "default")
        await until(changes, "a", "1")
        assert [d["metadata"]["name"] for d in copy.by_index("value", "1")] == ["a", "b"]
        await put(store, "a", "2")
        await until(changes, "a", "2")
        await store.delete(CONFIG_MAPS, "b", "default")
        await until(changes, "b", None)
        assert copy.by_index("value", "1") == []
        assert [d["metadata"]["name"] for d in copy.by_index("value", "2")] == ["a"]
        with pytest.raises(KeyError):
            copy.by_index("absent", "1")


async def test_an_object_is_decoded_once_per_version(store: Store) -> None:
    await store.create(CONFIG_MAPS, config_map("a"), "default")
    decoded: list[str] = []

    def decode(document: Document) -> Document:
        decoded.append(document["metadata"]["resourceVersion"])
        return document

    copy = Informer(store, CONFIG_MAPS, decode, namespace="default", indexes={"value": value})
    async with running(copy.run), copy.changes() as changes:
        await put(store, "a", "2")
        await until(changes, "a", "2")
        assert copy.by_index("value", "2") and copy.all()
    assert len(decoded) == len(set(decoded)) == 2


class Unsteady:
    """A cluster whose answers can be made to fail; everything else is the store's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.list_errors: list[Exception] = []
        self.watch_errors: list[Exception] = []
        self.lists = 0
        self.hang_up = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        self.lists += 1
        if self.list_errors:
            raise self.list_errors.pop(0)
        return await self._store.list(resource, namespace, options)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        if self.watch_errors:
            raise self.watch_errors.pop(0)
        async with self._store.watch(resource, namespace, options) as events:
            yield self._until_hung_up(events)

    async def _until_hung_up(self, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        async for event in events:
            yield event
            if self.hang_up.is_set():
                return


async def test_after_the_end_of_a_stream_it_watches_again_without_a_list(store: Store) -> None:
    cluster = Unsteady(store)
    cluster.hang_up.set()
    copy = informer(cluster, clock=FakeClock())  # which stands still: nothing is waited for
    async with running(copy.run), copy.changes() as changes:
        await store.create(CONFIG_MAPS, config_map("a", data={"k": "0"}), "default")
        for i in range(1, 6):
            await put(store, "a", str(i))
        told = await until(changes, "a", "5")
    assert [new for _, _, new in told] == ["0", "1", "2", "3", "4", "5"]
    assert cluster.lists == 1


async def test_after_an_expired_version_only_differences_are_reported(store: Store) -> None:
    for name in ("kept", "changed", "gone"):
        await store.create(CONFIG_MAPS, config_map(name, data={"k": "1"}), "default")
    cluster = Unsteady(store)
    cluster.hang_up.set()
    copy = informer(cluster)
    async with running(copy.run), copy.changes() as changes:
        for _ in range(3):
            await changes.receive()
        cluster.watch_errors = [Expired("too old")]
        # The stream ends behind this event; what follows happens while nobody watches.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put, store, "changed", "2")
            tasks.start_soon(store.delete, CONFIG_MAPS, "gone", "default")
            tasks.start_soon(store.create, CONFIG_MAPS, config_map("new", data={"k": "1"}), "default")
        told: list[str] = []
        with deadline():
            while len(told) < 3:
                change = await changes.receive()
                told.append(change.key[1])
    assert sorted(told) == ["changed", "gone", "new"]
    assert cluster.lists == 2


async def test_errors_are_waited_out(store: Store) -> None:
    cluster = Unsteady(store)
    cluster.list_errors = [Unavailable("starting"), Unavailable("starting")]
    cluster.watch_errors = [Unavailable("restarting")]
    copy = informer(cluster)
    with deadline():
        async with running(copy.run), copy.changes() as changes:
            await store.create(CONFIG_MAPS, config_map("a", data={"k": "1"}), "default")
            assert await until(changes, "a", "1") == [("a", None, "1")]
    assert cluster.lists == 3


def follows(copy: Informer[Document]) -> bool:
    return copy.is_following


async def test_it_is_following_again_after_the_missed_changes(store: Store) -> None:
    cluster = Unsteady(store)
    copy = informer(cluster)
    with deadline():
        async with running(copy.run):
            await copy.until_following(60)
            assert follows(copy)
            cluster.hang_up.set()
            cluster.watch_errors = [Unavailable("restarting"), Unavailable("restarting")]
            await store.create(CONFIG_MAPS, config_map("a", data={"k": "1"}), "default")
            while follows(copy):
                await checkpoint()
            cluster.hang_up = anyio.Event()
            await put(store, "a", "2")
            await copy.until_following(60)
            found = copy.get("a", "default")
            assert found and found["data"] == {"k": "2"}


async def test_the_wait_for_an_informer_that_never_follows_again_ends(store: Store) -> None:
    cluster, clock = Unsteady(store), FakeClock()
    copy = informer(cluster, clock=clock)
    cluster.list_errors = [Unavailable("gone for good")] * 1000
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(copy.run)
        tasks.start_soon(copy.until_following, 30.0)
        await clock.advance(31)
        with deadline():
            await copy.until_following(30.0)
        assert not copy.is_following
        tasks.cancel_scope.cancel()


class Quiet(Unsteady):
    """Nothing happens in it. A watch lasts until `over`, or ends at once."""

    def __init__(self, store: Store, *, lasts: bool) -> None:
        super().__init__(store)
        self.lasts = lasts
        self.over = anyio.Event()
        self.error: Exception | None = None
        self.watches = 0

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        await checkpoint()
        self.watches += 1
        yield self._silence()

    async def _silence(self) -> AsyncIterator[WatchEvent]:
        if self.lasts:
            self.over = anyio.Event()
            await self.over.wait()
        if self.error is not None:
            raise self.error
        for event in list[WatchEvent]():
            yield event


@asynccontextmanager
async def quiet(cluster: Quiet, clock: FakeClock) -> AsyncIterator[None]:
    seconds = Backoff(1.0, 8.0, jitter=0)
    with deadline():
        async with running(Informer(cluster, CONFIG_MAPS, lambda found: found, backoff=seconds, clock=clock).run):
            yield


@pytest.mark.parametrize("error", [None, Expired("too old")])
async def test_watches_that_end_at_once_are_begun_less_and_less_often(store: Store, error: Exception | None) -> None:
    cluster, clock = Quiet(store, lasts=False), FakeClock()
    cluster.error = error
    async with quiet(cluster, clock):
        for watches, wakes_at in [(2, 1), (3, 3), (4, 7), (5, 15), (6, 23)]:
            await clock.sleeping(1)
            assert (cluster.watches, clock.wakes_at) == (watches, [wakes_at])
            assert cluster.lists == (watches if error else 1)
            await clock.advance(wakes_at - clock.monotonic())


async def test_a_watch_that_lived_is_followed_by_another_at_once(store: Store) -> None:
    cluster, clock = Quiet(store, lasts=True), FakeClock()
    async with quiet(cluster, clock):
        for watches in range(1, 5):
            while cluster.watches < watches:
                await checkpoint()
            await clock.advance(60)
            assert clock.wakes_at == []
            cluster.over.set()


async def test_restarts_with_a_connection_in_between_are_no_longer_and_longer_outage(store: Store) -> None:
    cluster, clock = Quiet(store, lasts=True), FakeClock()
    cluster.error = Unavailable("restarting")
    async with quiet(cluster, clock):
        for restarts in range(1, 6):
            while cluster.watches < restarts:
                await checkpoint()
            await clock.advance(60)
            cluster.over.set()
            await clock.sleeping(1)
            assert clock.wakes_at == [clock.monotonic() + 1]
            await clock.advance(1)


async def test_a_list_of_several_pages_that_breaks_changes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devlet.cluster.informer._PAGE", 2)
    for i in range(5):
        await store.create(CONFIG_MAPS, config_map(f"c{i}", data={"k": "1"}), "default")
    copy = informer(store)
    async with running(copy.run):
        assert len(copy.all()) == 5


async def test_a_slow_informer_catches_up(root: Path) -> None:
    """The changes are no longer in memory when it reads them; it loses nothing."""
    async with open_store(root / "slow.db", Settings(watch_bytes=0)) as store:
        copy = informer(store, clock=FakeClock())  # which stands still: nothing is waited for
        async with running(copy.run), copy.changes() as changes:
            async with anyio.create_task_group() as tasks:
                for i in range(100):
                    tasks.start_soon(store.create, CONFIG_MAPS, config_map(f"c{i}", data={"k": "1"}), "default")
            names: set[str] = set()
            with deadline():
                while len(names) < 100:
                    names.add((await changes.receive()).key[1])
            assert len(copy.all()) == 100


async def test_a_listener_hears_of_present_objects_then_of_changes(store: Store) -> None:
    await store.create(CONFIG_MAPS, config_map("before"), "default")
    copy = informer(store)
    async with running(copy.run):
        heard: list[tuple[str, bool]] = []
        seen = anyio.Event()

        def listen(change: Changed[Document]) -> None:
            heard.append((change.key[1], change.old is None))
            if change.key[1] == "after":
                seen.set()

        copy.on_change(listen)
        assert heard == [("before", True)]
        await store.create(CONFIG_MAPS, config_map("after"), "default")
        with deadline():
            await seen.wait()
        assert heard == [("before", True), ("after", True)]


async def test_an_object_that_cannot_be_read_is_left_out_and_the_others_stay(store: Store) -> None:
    class Strict(msgspec.Struct):
        data: dict[str, int]

    await store.create(CONFIG_MAPS, config_map("a", data={"k": "1"}), "default")
    copy = Informer(store, CONFIG_MAPS, lambda found: msgspec.convert(found, Strict, strict=False), namespace="default")
    async with running(copy.run):
        assert copy.get("a", "default") == Strict({"k": 1})
        await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "one"}}), "default")
        await store.create(CONFIG_MAPS, config_map("b", data={"k": "2"}), "default")
        async with copy.changes() as changes:
            with deadline():
                while copy.get("b", "default") is None:
                    await changes.receive()
        assert copy.get("a", "default") is None


def picky(document: Document) -> Document:
    if document["data"]["k"] == "broken":
        raise TypeError("k is broken")
    return document


async def test_an_object_that_cannot_be_decoded_is_set_aside_and_the_others_are_followed(store: Store) -> None:
    await store.create(CONFIG_MAPS, config_map("bad", data={"k": "broken"}), "default")
    await store.create(CONFIG_MAPS, config_map("good", data={"k": "1"}), "default")
    aside = Quarantine()
    copy = Informer(store, CONFIG_MAPS, picky, namespace="default", indexes={"value": value}, quarantine=aside)
    async with running(copy.run), copy.changes() as changes:
        assert copy.get("bad", "default") is None
        assert [*aside.entries] == [("configmaps", "default", "bad")]
        await put(store, "good", "broken")
        await put(store, "bad", "2")
        assert await until(changes, "bad", "2") == [("good", None, "1"), ("good", "1", None), ("bad", None, "2")]
        assert [*aside.entries] == [("configmaps", "default", "good")]
        await store.delete(CONFIG_MAPS, "good", "default")
        await put(store, "bad", "3")
        await until(changes, "bad", "3")
        assert not aside.entries


async def test_an_index_that_fails_on_an_object_sets_it_aside(store: Store) -> None:
    await store.create(CONFIG_MAPS, config_map("no-data"), "default")
    aside = Quarantine()
    copy = Informer(store, CONFIG_MAPS, lambda d: d, indexes={"value": lambda d: [d["nothing"]]}, quarantine=aside)
    async with running(copy.run):
        assert ("configmaps", "default", "no-data") in aside.entries


async def test_a_listener_that_fails_is_called_with_the_next_change(store: Store) -> None:
    await store.create(CONFIG_MAPS, config_map("a", data={"k": "broken"}), "default")
    aside, heard, others = Quarantine(), list[str](), list[str]()

    def listener(change: Changed[Document]) -> None:
        heard.append(change.key[1])
        picky(change.new or {})

    copy = Informer(store, CONFIG_MAPS, lambda d: d, namespace="default", quarantine=aside)
    copy.on_change(listener)
    copy.on_change(lambda change: others.append(change.key[1]))
    async with running(copy.run), copy.changes() as changes:
        assert "listener failed on this object" in aside.entries["configmaps", "default", "a"].problem
        await store.create(CONFIG_MAPS, config_map("b", data={"k": "1"}), "default")
        await until(changes, "b", "1")
        assert heard == others == ["a", "b"]
        await put(store, "a", "1")
        await until(changes, "a", "1")
        assert not aside.entries
