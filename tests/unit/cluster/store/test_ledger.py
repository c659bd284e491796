from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from devlet.cluster.store.ledger import Ledger, open_file
from devlet.cluster.store.log_file import LogFile, Row
from devlet.cluster.store.settings import Settings
from devlet.errors import StateCorrupt, TooLarge, Unavailable
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio
KIND = CONFIG_MAPS.kind
KEY = ("default", "a")


def document(**data: str) -> Document:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "uid": "u"}, "data": data}


async def put(ledger: Ledger, name: str = "a", *, deleted: bool = False, **data: str) -> int:
    pending = ledger.write(KIND, ("default", name), document(**data), deleted=deleted)
    await pending.durable()
    return pending.record.version


def reopened(path: Path, clock: FakeClock, settings: Settings = Settings()) -> Ledger:
    file = open_file(path, clock)
    try:
        return Ledger(file, settings, clock)
    finally:
        file.close()


async def test_versions_of_a_new_ledger_start_at_the_clock_in_microseconds(ledger: Ledger, clock: FakeClock) -> None:
    assert ledger.version == int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    assert await put(ledger) == ledger.version == ledger.compacted + 1


async def test_a_write_is_newest_at_once_and_current_when_durable(ledger: Ledger) -> None:
    pending = ledger.write(KIND, KEY, document(k="v"))
    assert ledger.newest(KIND, KEY) is pending.record
    assert ledger.table(KIND).get(KEY) is None
    await pending.durable()
    assert ledger.table(KIND).get(KEY) is pending.record


async def test_a_deletion_on_its_way_is_absent_already(ledger: Ledger) -> None:
    await put(ledger)
    pending = ledger.write(KIND, KEY, document(), deleted=True)
    assert ledger.newest(KIND, KEY) is None
    assert ledger.table(KIND).get(KEY) is not None
    await ledger.settled(KIND, KEY)
    assert ledger.table(KIND).get(KEY) is None
    await pending.durable()


async def test_an_object_over_the_limit_leaves_no_trace(path: Path, clock: FakeClock) -> None:
    file = open_file(path, clock)
    ledger = Ledger(file, Settings(max_object_bytes=200), clock)
    with ledger.running():
        with pytest.raises(TooLarge, match="over the limit of 200 bytes"):
            ledger.write(KIND, KEY, document(k="x" * 200))
        assert ledger.newest(KIND, KEY) is None
        first = await put(ledger, k="small")
    assert first == ledger.compacted + 1
    file.close()


async def test_what_was_written_is_there_after_a_restart(path: Path, ledger: Ledger, clock: FakeClock) -> None:
    kept = await put(ledger, "kept", k="v")
    await put(ledger, "gone")
    last = await put(ledger, "gone", deleted=True)
    after = reopened(path, clock)
    assert {key: record.version for key, record in after.table(KIND).records.items()} == {("default", "kept"): kept}
    assert (after.version, after.compacted) == (last, ledger.compacted)
    assert [c.version for c in after.table(KIND).changes(0)] == [kept, last - 1, last]


def test_a_body_that_is_not_an_object_is_damage(path: Path, clock: FakeClock) -> None:
    file = open_file(path, clock)
    file.start_writing()
    version = file.contents().last + 1
    file.append([Row(version, 0, KIND.key, *KEY, False, 0, b"not json")])
    file.close()
    before = path.read_bytes()
    with pytest.raises(StateCorrupt, match=f"version {version}"):
        reopened(path, clock)
    assert path.read_bytes() == before


class Disk(LogFile):
    problem: Exception | None = None

    def append(self, rows: list[Row]) -> None:  # type: ignore[override]
        if self.problem is not None:
            raise self.problem
        super().append(rows)

    def probe(self, size: int = 0) -> None:
        if self.problem is not None:
            raise self.problem
        super().probe(size)


async def test_a_refusing_disk_fails_what_is_in_flight_and_nothing_else(path: Path, clock: FakeClock) -> None:
    open_file(path, clock).close()
    disk = Disk(path)
    ledger = Ledger(disk, Settings(), clock)
    outcomes: dict[str, str] = {}

    async def write(name: str) -> None:
        try:
            await put(ledger, name)
            outcomes[name] = "durable"
        except Unavailable as e:
            outcomes[name] = str(e)

    with ledger.running():
        await write("before")
        disk.problem = Unavailable("full")
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(write, name)
        assert ledger.newest(KIND, ("default", "a")) is None
        disk.problem = None
        await write("after")
        await write("a")
    assert outcomes == {"before": "durable", "a": "durable", "b": "full", "c": "full", "after": "durable"}
    disk.close()
    assert {key[1] for key in reopened(path, clock).table(KIND).records} == {"before", "after", "a"}


async def test_a_disk_that_takes_writes_again_is_noticed_without_a_write(
    path: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    open_file(path, clock).close()
    disk = Disk(path)
    ledger = Ledger(disk, Settings(), clock)

    async def problem() -> str | None:
        await clock.advance(1)
        return ledger.problem

    with ledger.running():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ledger.probe_while_failing)
            for _ in range(2):
                await put(ledger)
                disk.problem = Unavailable("full")
                for _ in range(3):
                    with pytest.raises(Unavailable):
                        await put(ledger)
                assert ledger.problem == "full"
                await clock.advance(5)
                assert ledger.problem == "full"
                disk.problem = None
                await until(problem, lambda found: found is None)
            tasks.cancel_scope.cancel()
    disk.close()
    assert caplog.messages == ["store cannot write", "store writes again"] * 2


async def test_a_write_that_succeeds_ends_the_problem(path: Path, clock: FakeClock) -> None:
    open_file(path, clock).close()
    disk = Disk(path)
    ledger = Ledger(disk, Settings(), clock)
    with ledger.running():
        disk.problem = Unavailable("full")
        with pytest.raises(Unavailable):
            await put(ledger)
        disk.problem = None
        await put(ledger)
        assert ledger.problem is None
    disk.close()


async def test_a_failed_deletion_leaves_the_object(path: Path, clock: FakeClock) -> None:
    open_file(path, clock).close()
    disk = Disk(path)
    ledger = Ledger(disk, Settings(), clock)
    with ledger.running():
        kept = await put(ledger)
        disk.problem = Unavailable("full")
        with pytest.raises(Unavailable):
            await put(ledger, deleted=True)
        newest = ledger.newest(KIND, KEY)
        assert newest is not None and newest.version == kept
    disk.close()


async def test_history_is_kept_by_age_and_number(path: Path, clock: FakeClock) -> None:
    file = open_file(path, clock)
    ledger = Ledger(file, Settings(history_age=100, history_events=3), clock)
    with ledger.running():
        versions = [await put(ledger, n=str(n)) for n in range(6)]
        ledger.compact()
        assert ledger.compacted < versions[0], "all of it is young"
        await clock.advance(101)
        ledger.compact()
        assert ledger.compacted == versions[2], "the newest three stay, however old"
        young = await put(ledger, n="young")
        ledger.compact()
        assert ledger.compacted == versions[3]
        rows = await ledger.read(versions)
        while len(rows) > 3:  # the file is compacted by the committer's thread
            rows = await ledger.read(versions)
        assert rows.keys() == set(versions[3:])
    file.close()
    after = reopened(path, clock)
    assert (after.compacted, after.version) == (versions[3], young)
    assert [c.version for c in after.table(KIND).changes(0)] == [*versions[4:], young]


async def test_history_has_a_limit_in_bytes(path: Path, clock: FakeClock) -> None:
    file = open_file(path, clock)
    ledger = Ledger(file, Settings(history_bytes=5_000), clock)
    with ledger.running():
        versions = [await put(ledger, n="x" * 1_000) for _ in range(20)]
        ledger.compact()
        left = [c.version for c in ledger.table(KIND).changes(0)]
    assert left == versions[-len(left) :]
    assert 2 <= len(left) <= 5
    file.close()


async def test_a_version_on_its_way_is_reached(ledger: Ledger) -> None:
    assert await ledger.reach(ledger.version)
    pending = ledger.write(KIND, KEY, document())
    assert await ledger.reach(pending.record.version)


async def test_a_version_that_does_not_come_is_not_waited_for_forever(path: Path, clock: FakeClock) -> None:
    file = open_file(path, clock)
    ledger = Ledger(file, Settings(version_wait=0.01), clock)
    with ledger.running():
        assert not await ledger.reach(ledger.version + 1)
    file.close()
