from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest

from devlet.cluster.client import EventType, MergePatch, WatchOptions
from devlet.cluster.store.settings import Settings
from devlet.cluster.store.store import Store, open_store
from devlet.errors import NotFound
from devlet.kit.clock import Clock
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, EVENTS
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio

TTL = 3_600.0
SETTINGS = Settings(event_ttl=TTL, expire_every=10.0, history_age=300.0, history_events=10)


@dataclass
class JumpingClock:
    """Its time of day can be set; what has passed since stays what it is."""

    clock: FakeClock
    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return self.clock.now() + self.ahead

    def monotonic(self) -> float:
        return self.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)


def event(name: str, message: str = "it happened") -> Document:
    about = {"kind": "Pod", "apiVersion": "v1", "name": "p", "namespace": "default"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "Test", "message": message, "type": "Normal"}


async def write(store: Store, *names: str) -> None:
    for name in names:
        await store.create(EVENTS, event(name), "default")


def names(store: Store) -> list[str]:
    return [key[1] for key in store.table(EVENTS).keys()]


async def until_left(store: Store, *wanted: str) -> None:
    async def left() -> list[str]:
        return names(store)

    await until(left, lambda found: found == sorted(wanted))


@asynccontextmanager
async def opened(path: Path, clock: Clock, settings: Settings = SETTINGS) -> AsyncIterator[Store]:
    async with open_store(path, settings, clock) as store:
        yield store


async def passed(clock: FakeClock, seconds: float) -> None:
    """The store's tasks sleep, wake as time passes, and sleep again."""
    await clock.sleeping(2)
    await clock.advance(seconds)
    await clock.sleeping(2)


async def test_an_event_goes_an_hour_after_it_was_written_and_other_objects_stay(path: Path, clock: FakeClock) -> None:
    async with opened(path, clock) as store:
        await store.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "default")
        await write(store, "a")
        await passed(clock, TTL - 20)
        assert names(store) == ["a"]
        await passed(clock, 40)
        await until_left(store)
        assert await store.get(CONFIG_MAPS, "c", "default")


async def test_each_write_of_an_event_starts_its_hour_again(path: Path, clock: FakeClock) -> None:
    async with opened(path, clock) as store:
        await write(store, "counted", "once")
        await passed(clock, TTL - 60)
        await store.patch(EVENTS, "counted", MergePatch({"count": 2}), "default")
        await passed(clock, 120)
        await until_left(store, "counted")
        await passed(clock, TTL)
        await until_left(store)


async def test_watchers_see_that_an_event_expired_at_a_version_of_its_own(path: Path, clock: FakeClock) -> None:
    async with opened(path, clock) as store:
        await write(store, "a")
        before = store.version
        options = WatchOptions(resource_version=str(before))
        async with store.watch(EVENTS, "default", options) as events:
            await passed(clock, TTL + 20)
            with deadline():
                seen = await anext(events)
        assert (seen.type, seen.object["metadata"]["name"]) == (EventType.DELETED, "a")
        assert int(seen.object["metadata"]["resourceVersion"]) > before
        assert seen.object["message"] == "it happened"
        with pytest.raises(NotFound):
            await store.get(EVENTS, "a", "default")


async def test_after_a_restart_an_event_has_the_time_that_it_had_left(path: Path, clock: FakeClock) -> None:
    async with opened(path, clock) as store:
        await write(store, "a")
        await passed(clock, TTL / 2)
        await write(store, "b")
    async with opened(path, clock) as store:
        await passed(clock, TTL / 2 + 20)
        await until_left(store, "b")
    await clock.advance(TTL)
    async with opened(path, clock) as store:  # what expired meanwhile goes at once
        await until_left(store)


async def test_a_clock_that_is_set_while_the_store_is_open_neither_expires_events_nor_keeps_them(
    path: Path, clock: FakeClock
) -> None:
    for ahead in (timedelta(days=365), timedelta(days=-365)):
        jumping = JumpingClock(clock)
        async with opened(path, jumping) as store:
            await write(store, "a")
            jumping.ahead = ahead
            await passed(clock, 60)
            assert names(store) == ["a"]
            await passed(clock, TTL)
            await until_left(store)


async def test_a_clock_that_is_set_leaves_the_history_as_it_is(path: Path, clock: FakeClock) -> None:
    jumping = JumpingClock(clock)
    async with opened(path, jumping, replace(SETTINGS, history_events=1)) as store:
        await write(store, "a", "b", "c")
        jumping.ahead = timedelta(days=365)
        await passed(clock, 60)
        assert len(store.table(EVENTS).changes(0)) == 3
        await passed(clock, 300)
        assert len(store.table(EVENTS).changes(0)) < 3


async def test_an_event_of_the_future_is_kept_for_an_hour_after_the_start(path: Path, clock: FakeClock) -> None:
    async with opened(path, JumpingClock(clock, timedelta(days=365))) as store:
        await write(store, "a")
    async with opened(path, clock) as store:
        await passed(clock, TTL - 20)
        assert names(store) == ["a"]
        await passed(clock, 60)
        await until_left(store)


async def test_of_too_many_events_those_that_were_written_first_go(path: Path, clock: FakeClock) -> None:
    async with opened(path, clock, replace(SETTINGS, max_events=2)) as store:
        await write(store, "a", "b", "c")
        await store.patch(EVENTS, "a", MergePatch({"count": 2}), "default")
        await passed(clock, 20)
        await until_left(store, "a", "c")


async def test_other_writes_go_through_while_thousands_expire(path: Path, clock: FakeClock) -> None:
    async with opened(path, clock) as store:
        async with anyio.create_task_group() as tasks:
            for first in range(0, 2_000, 100):
                tasks.start_soon(write, store, *(f"e{first + i:05d}" for i in range(100)))
        options = WatchOptions(resource_version=str(store.version))
        async with store.watch(EVENTS, "default", options) as events, anyio.create_task_group() as tasks:
            await clock.sleeping(2)
            tasks.start_soon(clock.advance, TTL + 20)
            with deadline():
                await anext(events)
                created = await store.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "default")
            await until_left(store)
        assert int(created["metadata"]["resourceVersion"]) < store.version - 1_000  # most of them went after it


async def test_the_history_of_an_expired_event_is_removed(path: Path, clock: FakeClock) -> None:
    async with opened(path, clock, replace(SETTINGS, history_events=1)) as store:
        await write(store, "a")
        await passed(clock, TTL + 20)
        await until_left(store)
        await passed(clock, 400)
        await store.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "default")
        await passed(clock, 400)
        assert store.table(EVENTS).changes(0) == []


async def test_an_event_that_is_being_written_when_it_is_due_stays(path: Path, clock: FakeClock) -> None:
    async with opened(path, clock) as store:
        await write(store, "a")
        await passed(clock, TTL - 5)
        async with anyio.create_task_group() as tasks:
            patch = MergePatch({"count": 2})
            for _ in range(3):
                tasks.start_soon(store.patch, EVENTS, "a", patch, "default")
            await clock.advance(10)
        assert names(store) == ["a"]
        assert (await store.get(EVENTS, "a", "default"))["count"] == 2
