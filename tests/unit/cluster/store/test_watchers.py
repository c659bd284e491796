from contextlib import ExitStack

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from devlet.cluster.client import EventType
from devlet.cluster.store.records import Record
from devlet.cluster.store.selection import Selection
from devlet.cluster.store.watchers import Recent, Update, Watcher, Watchers
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


BUDGET = 1 << 20
KIND = st.sampled_from(["configmaps", "secrets"])


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


def test_an_object_that_leaves_the_selection_is_shown_in_its_last_matching_state() -> None:
    update = Update(9, record(1, "1"), record(9, "2"), deleted=False)
    shown = update.document(EventType.DELETED, "v1")
    assert (shown["metadata"]["labels"], shown["metadata"]["resourceVersion"]) == ({"n": "1"}, "9")
    assert update.document(EventType.MODIFIED, "v1")["metadata"]["labels"] == {"n": "2"}


def test_decoded_documents_of_older_changes_are_not_kept() -> None:
    update = Update(2, None, record(2), deleted=False, written=record(2).document())
    assert update.document(EventType.ADDED, "v1") is update.document(EventType.ADDED, "v1")
    update.age()
    assert update.document(EventType.ADDED, "v1") is not update.document(EventType.ADDED, "v1")
    assert update.document(EventType.ADDED, "v1")["metadata"]["resourceVersion"] == "2"


@pytest.mark.parametrize(
    ("old", "deleted", "expected"),
    [(None, False, 0), (record(1), False, 1), (record(1), True, 2)],
    ids=["a new object", "a changed one", "a deleted one"],
)
def test_an_update_counts_with_the_states_that_are_not_in_memory_without_it(
    old: Record | None, deleted: bool, expected: int
) -> None:
    overhead = Update(2, None, record(2), deleted=False).pinned
    assert Update(2, old, record(2), deleted).pinned - overhead == expected * len(record(2).body)


def seen_by(recent: Recent, watched: Watcher, selection: Selection = EVERYTHING) -> list[int]:
    """The versions that a reader takes now."""
    versions = [u.version for u in recent.after(watched.position) if u.event_for(selection)]
    watched.position = recent.newest
    return versions


def test_a_watcher_gets_what_is_later_and_selected_in_order() -> None:
    watched = Watcher(LABELLED, after=2)
    with Watchers(BUDGET).added("configmaps", watched, 0) as recent:
        for version, n in ((1, "1"), (2, "1"), (3, "1"), (4, "2"), (5, "1")):
            recent.publish(Update(version, None, record(version, n), deleted=False))
        assert seen_by(recent, watched, LABELLED) == [3, 5]


def test_a_watcher_that_has_seen_everything_passes_over_what_is_not_selected() -> None:
    watched = Watcher(LABELLED, after=0)
    with Watchers(BUDGET).added("configmaps", watched, 0) as recent:
        recent.publish(Update(1, None, record(1, "2"), deleted=False))
        assert watched.position == recent.newest == 1
        recent.publish(Update(2, None, record(2, "1"), deleted=False))
        recent.publish(Update(3, None, record(3, "2"), deleted=False))
        assert (watched.position, recent.newest) == (1, 3)


@pytest.mark.anyio
async def test_waiting_ends_with_an_event_the_end_or_the_time() -> None:
    watched = Watcher(EVERYTHING, after=0)
    await watched.wait(0.001)
    with deadline(), Watchers(BUDGET).added("configmaps", watched, 0) as recent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.wait, 1000)
            await checkpoint()
            recent.publish(Update(1, None, record(1), deleted=False))
        assert seen_by(recent, watched) == [1]
        watched.end()
        await watched.wait(1000)


def test_changes_reach_only_watchers_of_the_kind() -> None:
    watchers, one, other = Watchers(BUDGET), Watcher(EVERYTHING, after=0), Watcher(EVERYTHING, after=0)
    with watchers.added("configmaps", one, 0) as maps, watchers.added("secrets", other, 0) as secrets:
        watchers.publish("configmaps", Update(1, None, record(1), deleted=False))
        assert (seen_by(maps, one), seen_by(secrets, other)) == ([1], [])
        watchers.end_all()
        assert one.ended and other.ended
    watchers.publish("configmaps", Update(2, None, record(2), deleted=False))
    assert watchers.bytes == 0


def test_a_change_that_some_watcher_has_not_seen_is_kept_and_counts_once() -> None:
    watchers, readers = Watchers(BUDGET), [Watcher(EVERYTHING, after=0) for _ in range(50)]
    with ExitStack() as stack:
        recents = [stack.enter_context(watchers.added("configmaps", reader, 0)) for reader in readers]
        for version in range(1, 4):
            watchers.publish("configmaps", Update(version, None, record(version), deleted=False))
        assert watchers.bytes == 3 * Update(1, None, record(1), deleted=False).pinned
        watchers.trim()
        for recent, reader in zip(recents, readers, strict=True):
            assert seen_by(recent, reader) == [1, 2, 3]
        watchers.trim()
        assert watchers.bytes == 0


def test_beyond_the_budget_the_oldest_changes_of_the_kind_that_holds_most_leave_memory() -> None:
    pinned = Update(1, None, record(1), deleted=False).pinned
    watchers, many, one = Watchers(4 * pinned), Watcher(EVERYTHING, after=0), Watcher(EVERYTHING, after=0)
    with watchers.added("configmaps", many, 0) as maps, watchers.added("secrets", one, 0) as secrets:
        watchers.publish("secrets", Update(1, None, record(1), deleted=False))
        for version in range(2, 10):
            watchers.publish("configmaps", Update(version, None, record(version), deleted=False))
        assert watchers.bytes == 4 * pinned
        assert (maps.start, secrets.start) == (6, 0)
        assert [update.version for update in maps.after(6)] == [7, 8, 9]


class Accounting(RuleBasedStateMachine):
    """Watchers come, read, and go, while objects of two kinds change."""

    def __init__(self) -> None:
        super().__init__()
        self.watchers = Watchers(8_000)
        self.version = 0
        self.published: dict[str, list[int]] = {"configmaps": [], "secrets": []}
        self.readers: list[tuple[ExitStack, str, Recent, Watcher]] = []

    @rule(kind=KIND, after=st.integers(0, 5))
    def come(self, kind: str, after: int) -> None:
        stack, watcher = ExitStack(), Watcher(EVERYTHING, after=max(0, self.version - after))
        self.readers.append(
            (stack, kind, stack.enter_context(self.watchers.added(kind, watcher, self.version)), watcher)
        )

    @rule(kind=KIND, deleted=st.booleans(), size=st.integers(0, 3_000))
    def change(self, kind: str, deleted: bool, size: int) -> None:
        self.version += 1
        old, new = record(self.version, "x" * size), record(self.version)
        self.watchers.publish(kind, Update(self.version, old, new, deleted))
        self.published[kind].append(self.version)

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        _, _, recent, watcher = data.draw(st.sampled_from(self.readers))
        if watcher.position < recent.start:  # from disk
            watcher.position = recent.start
        for update in list(recent.after(watcher.position))[: data.draw(st.integers(1, 5))]:
            watcher.position = update.version

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        stack, *_ = self.readers.pop(data.draw(st.integers(0, len(self.readers) - 1)))
        stack.close()

    @rule()
    def trim(self) -> None:
        self.watchers.trim()

    @invariant()
    def what_is_held_is_counted_and_within_the_budget(self) -> None:
        held = {id(recent): recent for _, _, recent, _ in self.readers}.values()
        assert self.watchers.bytes == sum(u.pinned for recent in held for u in recent.after(recent.start))
        assert 0 <= self.watchers.bytes <= 8_000
        if not self.readers:
            assert self.watchers.bytes == 0

    @invariant()
    def what_is_not_on_disk_only_is_complete_and_in_order(self) -> None:
        for _, kind, recent, watcher in self.readers:
            position = max(watcher.position, recent.start)
            expected = [version for version in self.published[kind] if version > position]
            assert [update.version for update in recent.after(position)] == expected


Accounting.TestCase.settings = settings(max_examples=100, deadline=None)
TestAccounting = Accounting.TestCase
