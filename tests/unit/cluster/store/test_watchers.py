import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from devlet.cluster.client import EventType
from devlet.cluster.store.records import Record
from devlet.cluster.store.selection import Selection
from devlet.cluster.store.watchers import Update, Watcher, Watchers
from devlet.objects.kinds import CONFIG_MAPS
from devlet.testing.waiting import deadline

EVERYTHING = Selection(CONFIG_MAPS, "", "", "")
LABELLED = Selection(CONFIG_MAPS, "", "n=1", "")


def record(version: int, n: str = "1", name: str = "a") -> Record:
    body = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "resourceVersion": str(version), "labels": {"n": n}},
    }
    return Record(("ns", name), version, msgspec.json.encode(body))


def watcher(selection: Selection = EVERYTHING, *, after: int = 0, events: int = 100, size: int = 10_000) -> Watcher:
    return Watcher(selection, after=after, max_events=events, max_bytes=size)


@pytest.mark.parametrize(
    ("old", "new", "deleted", "expected"),
    [
        (None, "1", False, EventType.ADDED),
        (None, "2", False, None),
        ("2", "1", False, EventType.ADDED),
        ("1", "1", False, EventType.MODIFIED),
        ("1", "2", False, EventType.DELETED),
        ("2", "3", False, None),
        ("1", "1", True, EventType.DELETED),
        ("2", "2", True, None),
        # the last write changed the label and removed the object
        ("1", "2", True, EventType.DELETED),
        ("2", "1", True, None),
    ],
)
def test_what_a_change_means_to_a_selection(
    old: str | None, new: str, deleted: bool, expected: EventType | None
) -> None:
    update = Update(2, record(1, old) if old else None, record(2, new), deleted)
    assert update.event_for(LABELLED) is expected


def test_who_leaves_the_selection_is_shown_as_before_at_the_version_of_the_change() -> None:
    update = Update(9, record(1, "1"), record(9, "2"), deleted=False)
    shown = update.document(EventType.DELETED, "v1")
    assert (shown["metadata"]["labels"], shown["metadata"]["resourceVersion"]) == ({"n": "1"}, "9")
    assert update.document(EventType.MODIFIED, "v1")["metadata"]["labels"] == {"n": "2"}


def test_a_watcher_gets_what_is_later_and_selected_in_order() -> None:
    watched = watcher(LABELLED, after=2)
    for version, n in ((1, "1"), (2, "1"), (3, "1"), (4, "2"), (5, "1")):
        watched.offer(Update(version, None, record(version, n), deleted=False))
    taken = [watched.take(), watched.take(), watched.take()]
    assert [t[1].version if t else None for t in taken] == [3, 5, None]


@pytest.mark.parametrize("watched", [watcher(events=3), watcher(size=350)])
def test_a_watcher_that_falls_behind_is_ended(watched: Watcher) -> None:
    for version in range(1, 4):
        watched.offer(Update(version, None, record(version), deleted=False))
    ended = [watched.ended]
    watched.offer(Update(4, None, record(4), deleted=False))
    assert [*ended, watched.ended] == [False, True]
    assert watched.take() is None


def test_what_was_taken_does_not_count() -> None:
    watched = watcher(events=1, size=120)
    for version in range(1, 50):
        watched.offer(Update(version, None, record(version), deleted=False))
        assert watched.take() is not None
    assert not watched.ended


@pytest.mark.anyio
async def test_waiting_ends_with_an_event_the_end_or_the_time() -> None:
    watched = watcher()
    assert not await watched.wait(0.001)
    with deadline():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.wait, 1000)
            await checkpoint()
            watched.offer(Update(1, None, record(1), deleted=False))
        assert await watched.wait(1000)
        watched.take()
        watched.end()
        assert await watched.wait(1000)


def test_changes_go_to_those_who_watch_the_kind() -> None:
    watchers, one, other = Watchers(), watcher(), watcher()
    with watchers.added("configmaps", one), watchers.added("secrets", other):
        watchers.publish("configmaps", Update(1, None, record(1), deleted=False))
        assert (one.take() is not None, other.take()) == (True, None)
        watchers.end_all()
        assert one.ended and other.ended
    late = watcher()
    with watchers.added("configmaps", late):
        pass
    watchers.publish("configmaps", Update(2, None, record(2), deleted=False))
    assert late.take() is None
