from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from devlet.cluster.client import Cluster, ListOptions
from devlet.cluster.events import NORMAL, WARNING, Recorder, Settings
from devlet.cluster.store.store import Store, open_store
from devlet.errors import Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import EVENTS, Resource
from devlet.objects.types.meta import ObjectReference
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline, until

pytestmark = pytest.mark.anyio

POD = ObjectReference(kind="Pod", api_version="v1", namespace="default", name="p", uid="u1")
NODE = ObjectReference(kind="Node", api_version="v1", name="n1", uid="u2")


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def recorder(cluster: Cluster, clock: FakeClock, **settings: Any) -> Recorder:
    return Recorder(cluster, "devlet", "n1", clock, Settings(**settings))


async def events(store: Store, number: int, count: int = 1) -> list[Document]:
    """When there are so many, and they stand for so many things."""

    async def read() -> list[Document]:
        return list((await store.list(EVENTS, "", ListOptions())).items)

    return await until(read, lambda seen: len(seen) == number and sum(each["count"] for each in seen) == count)


async def test_an_event_names_the_object_the_reason_and_the_reporter(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    async with running(events_of.run):
        events_of.record(POD, WARNING, "OutOfcpu", "no cpu")
        (event,) = await events(store, 1)
    at = "2025-01-01T00:00:00Z"
    assert event["involvedObject"] == {
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "p",
        "uid": "u1",
    }
    assert event["metadata"]["namespace"] == "default" and event["metadata"]["name"].startswith("p.")
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "OutOfcpu", "no cpu")
    assert event["source"] == {"component": "devlet", "host": "n1"}
    assert (event["reportingComponent"], event["reportingInstance"]) == ("devlet", "n1")
    assert (event["firstTimestamp"], event["lastTimestamp"], event["count"]) == (at, at, 1)


async def test_events_about_nodes_are_in_the_default_namespace(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    async with running(events_of.run):
        events_of.record(NODE, NORMAL, "Rebooted", "again")
        (event,) = await events(store, 1)
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


async def test_a_repeat_counts_up_the_event_that_is_there(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    async with running(events_of.run):
        events_of.record(POD, WARNING, "BackOff", "again")
        await events(store, 1)
        await clock.advance(60)
        events_of.record(POD, WARNING, "BackOff", "again")
        (event,) = await events(store, 1, count=2)
    assert event["firstTimestamp"] == "2025-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2025-01-01T00:01:00Z"


async def test_repeats_that_wait_are_written_as_one(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    for _ in range(5):
        events_of.record(POD, WARNING, "BackOff", "again")
    async with running(events_of.run):
        await events(store, 1, count=5)


async def test_another_message_or_a_repeat_after_ten_minutes_is_another_event(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    async with running(events_of.run):
        events_of.record(POD, WARNING, "BackOff", "again")
        events_of.record(POD, WARNING, "BackOff", "and again")
        await events(store, 2, count=2)
        await clock.advance(601)
        events_of.record(POD, WARNING, "BackOff", "again")
        await events(store, 3, count=3)


async def test_a_deleted_event_is_created_again(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    async with running(events_of.run):
        events_of.record(POD, WARNING, "BackOff", "again")
        (event,) = await events(store, 1)
        await store.delete(EVENTS, event["metadata"]["name"], "default")
        events_of.record(POD, WARNING, "BackOff", "again")
        (again,) = await events(store, 1)
    assert again["metadata"]["name"] != event["metadata"]["name"]


async def test_a_long_message_and_a_long_name_are_cut(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    long = ObjectReference(kind="Pod", api_version="v1", namespace="default", name="a" * 253, uid="u")
    async with running(events_of.run):
        events_of.record(long, WARNING, "Long", "m" * 5000)
        (event,) = await events(store, 1)
    assert len(event["message"]) == 1024 and len(event["metadata"]["name"]) <= 253


async def test_more_than_can_wait_is_dropped_and_counted(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock, waiting=2)
    for number in range(5):
        events_of.record(POD, NORMAL, "Started", f"{number}")
    assert events_of.dropped == 3
    async with running(events_of.run):
        await events(store, 2, count=2)


async def test_what_waits_at_the_stop_is_written(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    async with running(events_of.run):
        for number in range(20):
            events_of.record(POD, NORMAL, "Started", f"{number}")
    assert len((await store.list(EVENTS)).items) == 20


async def test_an_event_that_can_never_be_written_does_not_keep_the_others(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock)
    nowhere = ObjectReference(kind="Pod", api_version="v1", namespace="nowhere", name="p", uid="u")
    async with running(events_of.run):
        events_of.record(nowhere, NORMAL, "Started", "lost")
        events_of.record(POD, NORMAL, "Started", "kept")
        (event,) = await events(store, 1)
    assert event["message"] == "kept"


class Away:
    """A cluster that does not answer the first few creates."""

    def __init__(self, store: Store, failures: int) -> None:
        self._store = store
        self.failures = failures

    async def create(self, resource: Resource, document: Document, namespace: str) -> Document:
        if self.failures:
            self.failures -= 1
            raise Unavailable("not now")
        return await self._store.create(resource, document, namespace)


async def test_a_cluster_that_is_away_is_asked_again(store: Store, clock: FakeClock) -> None:
    away: Any = Away(store, 3)
    events_of = recorder(away, clock, retry=Backoff(1.0, 10.0))
    async with running(events_of.run):
        events_of.record(POD, NORMAL, "Started", "late")
        with deadline():
            await clock.sleeping(1)
        await clock.advance(20)
        await events(store, 1)
    assert away.failures == 0


@pytest.mark.long
async def test_recording_returns_at_once_while_the_cluster_is_away(store: Store, clock: FakeClock) -> None:
    away: Any = Away(store, 10_000)
    events_of = recorder(away, clock, tries=2, drain=0.01)
    async with running(events_of.run):
        for number in range(1_200):
            events_of.record(POD, NORMAL, "Started", f"{number}")
    assert not (await store.list(EVENTS)).items


async def test_many_at_once_are_written_little_by_little_and_warnings_first(store: Store, clock: FakeClock) -> None:
    events_of = recorder(store, clock, rate=1.0, burst=2)
    for reason in ("A", "B", "C"):
        events_of.record(POD, NORMAL, reason, "it went well")
    events_of.record(POD, WARNING, "Failed", "it did not")
    async with running(events_of.run):
        assert {each["reason"] for each in await events(store, 2, 2)} == {"Failed", "A"}
        await clock.sleeping(1)
        await clock.advance(1)
        assert {each["reason"] for each in await events(store, 3, 3)} == {"Failed", "A", "B"}
