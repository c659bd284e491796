from pathlib import Path

import anyio
import pytest

from devlet.cluster.client import EventType, MergePatch, VersionMatch, WatchEvent, WatchOptions
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.cluster.store.watch import check_options
from devlet.errors import Expired, InvalidObject
from devlet.objects.kinds import CONFIG_MAPS, SECRETS
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline
from tests.support.cluster_contract.reading import watching
from tests.support.cluster_contract.specimens import config_map, named, version

pytestmark = [pytest.mark.anyio, pytest.mark.spec("KA-4.5")]
SHORT = Settings(history_age=10, history_events=1, compact_every=5)


async def start_of(store: Store) -> str:
    return (await store.list(CONFIG_MAPS, "default")).resource_version


async def collect(store: Store, start: str, until: str) -> list[WatchEvent]:
    """All events from a version on up to a name, by as many watches as that takes."""
    seen: list[WatchEvent] = []
    with deadline():
        while True:
            options = WatchOptions(resource_version=start)
            async with store.watch(CONFIG_MAPS, "default", options) as events:
                async for event in events:
                    seen.append(event)
                    start = event.object["metadata"]["resourceVersion"]
                    if event.object["metadata"]["name"] == until:
                        return seen


async def test_history_that_grew_old_while_the_store_was_closed_is_dropped_when_it_is_opened(path: Path) -> None:
    clock = FakeClock()
    async with open_store(path, SHORT, clock) as store:
        start = await start_of(store)
        for name in ("a", "b"):
            await store.create(CONFIG_MAPS, config_map(name), "default")
    await clock.advance(20)
    async with open_store(path, SHORT, clock) as store:
        await clock.sleeping(1)
        with pytest.raises(Expired, match=f"too old resource version: {start}"):
            async with store.watch(CONFIG_MAPS, "default", WatchOptions(resource_version=start)) as events:
                await anext(aiter(events))


async def test_a_version_whose_history_is_gone_is_expired(path: Path) -> None:
    clock = FakeClock()
    async with open_store(path, SHORT, clock) as store:
        start = await start_of(store)
        await store.create(CONFIG_MAPS, config_map("a"), "default")
        await clock.sleeping(1)
        await clock.advance(20)
        await store.create(SECRETS, named("s"), "default")
        await clock.advance(20)
        with pytest.raises(Expired, match=f"too old resource version: {start}"):
            async with store.watch(CONFIG_MAPS, "default", WatchOptions(resource_version=start)) as events:
                await anext(events)
        with pytest.raises(Expired):
            async with watching(store, CONFIG_MAPS, "default", resource_version="1") as stream:
                await stream.next()


async def test_history_outlives_the_process(path: Path) -> None:
    async with open_store(path) as store:
        start = await start_of(store)
        await store.create(CONFIG_MAPS, config_map("a"), "default")
        await store.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "w"}}), "default")
        await store.delete(CONFIG_MAPS, "a", "default")
        await store.create(CONFIG_MAPS, config_map("b"), "default")
        before = await collect(store, start, "b")
    async with open_store(path) as store:
        assert await collect(store, start, "b") == before
        assert [event.type for event in before] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]


async def test_a_version_of_another_cluster_is_never_taken_for_ours(root: Path) -> None:
    clock = FakeClock()
    async with open_store(root / "first.db", clock=clock) as store:
        await store.create(CONFIG_MAPS, config_map("a"), "default")
        start = await start_of(store)
    await clock.advance(60)
    async with open_store(root / "second.db", clock=clock) as store:
        with pytest.raises(Expired):
            async with watching(store, CONFIG_MAPS, "default", resource_version=start) as stream:
                await stream.next()


@pytest.mark.parametrize("budget", [0, 20_000, 1 << 20])
async def test_a_slow_reader_gets_every_event_in_order_and_holds_up_no_memory(path: Path, budget: int) -> None:
    async with open_store(path, Settings(watch_bytes=budget)) as store:
        options = WatchOptions(resource_version=await start_of(store))
        async with store.watch(CONFIG_MAPS, "default", options) as events:
            for i in range(200):
                await store.create(CONFIG_MAPS, config_map(f"c{i:03}"), "default")
                await store.delete(CONFIG_MAPS, f"c{i:03}", "default")
                assert store.unread_bytes <= budget
            with deadline():
                seen = [await anext(events) for _ in range(400)]
        assert [event.object["metadata"]["name"] for event in seen[::2]] == [f"c{i:03}" for i in range(200)]
        assert [event.type for event in seen] == [EventType.ADDED, EventType.DELETED] * 200
        assert store.unread_bytes == 0


async def test_present_objects_are_shown_as_they_were_when_the_watch_began(path: Path) -> None:
    async with open_store(path) as store:
        for i in range(0, 400, 2):
            await store.create(CONFIG_MAPS, config_map(f"c{i:03}", data={"k": "x" * 1_000}), "default")
        before = (await store.list(CONFIG_MAPS)).items
        async with store.watch(CONFIG_MAPS, options=WatchOptions(bookmarks=True)) as events:
            seen = [await anext(events)]
            version_then = store.version
            for i in range(400):
                match i % 4:
                    case 0:
                        await store.patch(CONFIG_MAPS, f"c{i:03}", MergePatch({"data": {"k": "new"}}), "default")
                    case 2:
                        await store.delete(CONFIG_MAPS, f"c{i:03}", "default")
                    case _:
                        await store.create(CONFIG_MAPS, config_map(f"c{i:03}"), "default")
            with deadline():
                while (event := await anext(events)).type is not EventType.BOOKMARK:
                    seen.append(event)
                changes = [await anext(events) for _ in range(400)]
        assert [event.object for event in seen] == list(before)
        assert event.object["metadata"]["resourceVersion"] == str(version_then)
        versions = [version(event.object) for event in changes]
        assert versions == sorted(set(versions)) and versions[0] > version_then


async def test_a_reader_of_present_objects_that_are_forgotten_has_to_begin_again(path: Path) -> None:
    clock = FakeClock()
    async with open_store(path, SHORT, clock) as store:
        for i in range(100):
            await store.create(CONFIG_MAPS, config_map(f"c{i:03}", data={"k": "x" * 1_000}), "default")
        async with store.watch(CONFIG_MAPS) as events:
            await anext(events)
            for i in range(100):
                await store.delete(CONFIG_MAPS, f"c{i:03}", "default")
            await clock.sleeping(1)
            await clock.advance(20)
            with deadline(), pytest.raises(Expired):
                while True:
                    await anext(events)


async def test_a_reader_that_falls_behind_again_and_again_loses_nothing(path: Path) -> None:
    async with open_store(path, Settings(watch_bytes=3_000)) as store, anyio.create_task_group() as tasks:
        start = await start_of(store)

        async def write() -> None:
            for i in range(150):
                await store.create(CONFIG_MAPS, config_map(f"c{i:03}"), "default")

        tasks.start_soon(write)
        seen = await collect(store, start, "c149")
        versions = [version(event.object) for event in seen]
        assert (len(versions), versions) == (150, sorted(set(versions)))


async def test_bookmarks_come_when_it_is_quiet(path: Path) -> None:
    async with open_store(path, Settings(bookmark_every=0.01)) as store:
        options = {"resource_version": await start_of(store), "bookmarks": True}
        async with watching(store, CONFIG_MAPS, "default", **options) as stream:
            await store.create(SECRETS, named("another-kind"), "default")
            newest = store.version
            while version((event := await stream.next(bookmarks=True)).object) < newest:
                pass
            assert event.type is EventType.BOOKMARK
            created = await store.create(CONFIG_MAPS, config_map("a"), "default")
            assert (await stream.next()).object == created


async def test_a_watch_ends_when_the_store_closes(path: Path) -> None:
    seen: list[WatchEvent] = []
    async with anyio.create_task_group() as tasks:
        async with open_store(path) as store:
            ready = anyio.Event()

            async def read() -> None:
                async with store.watch(
                    CONFIG_MAPS, "default", WatchOptions(resource_version=str(store.version))
                ) as events:
                    ready.set()
                    seen.extend([event async for event in events])

            tasks.start_soon(read)
            await ready.wait()
            await store.create(CONFIG_MAPS, config_map("a"), "default")
    assert len(seen) <= 1


@pytest.mark.parametrize(
    ("initial", "match", "accepted"),
    [
        (None, VersionMatch.ANY, True),
        (True, VersionMatch.NOT_OLDER_THAN, True),
        (False, VersionMatch.NOT_OLDER_THAN, True),
        (True, VersionMatch.ANY, False),
        (False, VersionMatch.EXACT, False),
        (None, VersionMatch.NOT_OLDER_THAN, False),
    ],
)
async def test_the_options_must_agree(initial: bool | None, match: VersionMatch, accepted: bool) -> None:
    options = WatchOptions(send_initial_events=initial, version_match=match)
    if accepted:
        check_options(options)
        assert options.version_match is match
        return
    with pytest.raises(InvalidObject) as refused:
        check_options(options)
    assert [cause.field for cause in refused.value.causes] == ["resourceVersionMatch"]
