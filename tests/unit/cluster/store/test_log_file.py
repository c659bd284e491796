import errno
import os
import random
import sqlite3
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from devlet.cluster.store import database_files, high_water_mark, log_file
from devlet.cluster.store.high_water_mark import Mark
from devlet.cluster.store.log_file import LogFile, Row
from devlet.errors import StateCorrupt, Unavailable

BODY = b'{"metadata":{"name":"a"},"data":{"k":"' + b"v" * 200 + b'"}}'


def row(version: int, *, name: str = "a", body: bytes = BODY, deleted: bool = False, previous: int = 0) -> Row:
    return Row(version, 1_700_000_000, "configmaps", "default", name, deleted, previous, body)


@pytest.fixture
def path(root: Path) -> Path:
    return root / "cluster.db"


@contextmanager
def opened(path: Path, *, writing: bool = False) -> Iterator[LogFile]:
    file = LogFile(path)
    try:
        if writing:
            file.start_writing()
        yield file
    finally:
        file.close()


def made(path: Path, rows: int = 40) -> list[Row]:
    """A log with so many rows, and what is in it."""
    log_file.create(path, 100)
    with opened(path, writing=True) as file:
        file.append([row(101 + i, name=f"object-{i}") for i in range(rows)])
    return contents(path)


def contents(path: Path) -> list[Row]:
    with opened(path) as file:
        file.contents()
        return list(file.rows())


def test_a_new_log_is_empty_private_and_starts_above_its_first_version(path: Path) -> None:
    log_file.create(path, 100)
    with opened(path) as file:
        assert list(file.rows()) == []
        assert file.contents() == log_file.Contents(100, 100)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["cluster.db"]


def test_files_beside_the_log_are_private(path: Path) -> None:
    log_file.create(path, 100)
    with opened(path, writing=True) as file:
        file.append([row(101)])
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert "cluster.db-wal" in modes


def test_what_a_crash_left_of_a_creation_is_replaced(path: Path) -> None:
    path.with_name("cluster.db.new").write_bytes(b"half")
    log_file.create(path, 5)
    assert contents(path) == []


def test_rows_come_back_as_they_were_written(path: Path) -> None:
    log_file.create(path, 100)
    rows = [row(101, name="ä"), row(102, body=b"\x00\xff"), row(103, deleted=True, previous=101, body=b"")]
    with opened(path, writing=True) as file:
        file.append(rows[:2])
        file.append(rows[2:])
        assert file.read([101, 103, 999]) == {101: rows[0], 103: rows[2]}
    assert contents(path) == rows


def test_a_failed_append_leaves_nothing(path: Path) -> None:
    before = made(path)
    with opened(path, writing=True) as file:
        with pytest.raises(StateCorrupt):  # the version is taken
            file.append([row(500), row(101)])
        file.append([row(501)])
    assert contents(path) == [*before, row(501)]


def test_a_frozen_log_takes_no_more_writes_and_keeps_what_it_has(path: Path) -> None:
    rows = made(path)
    with opened(path, writing=True) as file:
        file.freeze()
        with pytest.raises(Unavailable, match="takes no more writes"):
            file.append([row(rows[-1].version + 1)])
        with pytest.raises(Unavailable):
            file.compact(rows[0].version, rows[-1].version, [rows[0].version])
        assert list(file.rows()) == rows


def test_compaction_forgets_versions_and_remembers_how_far_it_came(path: Path) -> None:
    rows = made(path, 4)
    with opened(path, writing=True) as file:
        file.compact(103, 104, [101, 102])
    with opened(path) as file:
        assert list(file.rows()) == rows[2:]
        assert file.contents() == log_file.Contents(103, 104)


def test_the_newest_version_is_remembered_when_its_row_is_gone(path: Path) -> None:
    made(path, 2)
    with opened(path, writing=True) as file:
        file.compact(102, 102, [101, 102])
    with opened(path) as file:
        assert file.contents() == log_file.Contents(102, 102)


def test_the_mark_follows_each_commit_without_a_sync_of_its_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_file.create(path, 100)
    with opened(path, writing=True) as file:
        assert high_water_mark.read(database_files.mark(path)) == Mark(100, 100)
        with monkeypatch.context() as patch:
            patch.delattr(os, "fsync")
            patch.delattr(os, "fdatasync")
            file.append([row(101), row(102)])
            file.append([row(103)])
        appended = high_water_mark.read(database_files.mark(path))
        file.compact(102, 103, [101, 999])
        compacted = high_water_mark.read(database_files.mark(path))
    assert appended is not None
    assert (appended.version, appended.compacted, appended.rows) == (103, 100, 3)
    assert compacted is not None
    assert (compacted.version, compacted.compacted, compacted.rows) == (103, 102, 2)
    assert contents(path) == [row(102), row(103)]


def test_a_failed_append_does_not_move_the_mark(path: Path) -> None:
    made(path)
    with opened(path, writing=True) as file:
        before = high_water_mark.read(database_files.mark(path))
        with pytest.raises(StateCorrupt):
            file.append([row(500), row(101)])
        assert high_water_mark.read(database_files.mark(path)) == before


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_nothing_is_committed_while_a_file_of_the_database_is_not_in_its_place(path: Path, suffix: str) -> None:
    made(path, 1)
    moved, away = Path(f"{path}{suffix}"), path.with_name("away")
    with opened(path, writing=True) as file:
        moved.rename(away)
        problem = f"{moved} was removed or replaced while devlet runs"
        with pytest.raises(Unavailable, match=problem):
            file.append([row(201, name="refused")])
        with pytest.raises(Unavailable, match=problem):
            file.probe()
        away.rename(moved)
        file.append([row(202, name="accepted")])
    assert [each.name for each in contents(path)] == ["object-0", "accepted"]


def test_what_was_committed_before_the_write_ahead_log_was_removed_is_saved_by_a_clean_stop(path: Path) -> None:
    made(path, 1)
    with opened(path, writing=True) as file:
        file.append([row(201, name="last")])
        for suffix in ("-wal", "-shm", "-mark"):
            Path(f"{path}{suffix}").unlink()
    assert [each.name for each in contents(path)] == ["object-0", "last"]


def test_a_removed_mark_is_written_again_with_one_warning(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made(path, 1)
    with opened(path, writing=True) as file:
        database_files.mark(path).unlink()
        for version in (201, 202):
            file.append([row(version)])
        mark = high_water_mark.read(database_files.mark(path))
        assert mark is not None
        assert mark.version == 202
    assert caplog.messages == ["removed file written again"]


def test_a_probe_changes_nothing_that_can_be_read(path: Path) -> None:
    before = made(path)
    with opened(path, writing=True) as file:
        size = database_files.log(path).stat().st_size
        file.probe(10_000)
        assert database_files.log(path).stat().st_size > size  # it was a write
    assert contents(path) == before


def test_a_mark_that_cannot_be_written_stays_behind_and_fails_no_write(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    log_file.create(path, 100)
    with opened(path, writing=True) as file:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            file.append([row(101)])
            file.append([row(102)])
    assert [record.message for record in caplog.records] == ["high-water mark not written"]
    assert high_water_mark.read(database_files.mark(path)) == Mark(100, 100)
    assert contents(path) == [row(101), row(102)]


def test_readers_see_what_is_committed_while_another_appends(path: Path) -> None:
    log_file.create(path, 100)
    with opened(path, writing=True) as file:
        file.append([row(101)])
        assert file.read([101, 102]).keys() == {101}
        file.append([row(102)])
        assert file.read([101, 102]).keys() == {101, 102}


def foreign_text(path: Path) -> None:
    path.write_text("these are not the bytes you are looking for\n" * 100)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE log (version INTEGER PRIMARY KEY)")
        db.commit()


def newer_format(path: Path) -> None:
    made(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {len(log_file.MIGRATIONS) + 1}")


def no_marks(path: Path) -> None:
    made(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DELETE FROM mark")


def no_table(path: Path) -> None:
    made(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DROP TABLE log")


def truncated(path: Path) -> None:
    made(path)
    os.truncate(path, path.stat().st_size // 2)


def beheaded(path: Path) -> None:
    made(path)
    path.write_bytes(path.read_bytes()[:60])


def flipped_body(path: Path) -> None:
    made(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"v" * 100) + 50] ^= 1
    path.write_bytes(data)


def flipped_name(path: Path) -> None:
    made(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"object-17")] ^= 1
    path.write_bytes(data)


def flipped_mark(path: Path) -> None:
    made(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE mark SET version = version - 1")


def fewer_cells(path: Path) -> None:
    """A page that says it holds fewer rows than it does."""
    made(path)
    data = bytearray(path.read_bytes())
    page = next(at for at in range(8192, len(data), 8192) if data[at] == 0x0D and b"object-" in data[at : at + 8192])
    (cells,) = struct.unpack_from(">H", data, page + 3)
    struct.pack_into(">H", data, page + 3, cells - 1)
    path.write_bytes(data)


DAMAGE = [
    foreign_text,
    empty,
    foreign_database,
    newer_format,
    no_marks,
    no_table,
    truncated,
    beheaded,
    flipped_body,
    flipped_name,
    flipped_mark,
    fewer_cells,
]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_or_foreign_file_is_refused_and_left_as_it_is(path: Path, damage: Callable[[Path], None]) -> None:
    damage(path)
    before = path.read_bytes()
    with pytest.raises(StateCorrupt) as refused:
        contents(path)
    assert str(path) in str(refused.value)
    assert path.read_bytes() == before
    beside = {entry.name: entry.stat().st_size for entry in path.parent.iterdir() if entry != path}
    assert beside.keys() <= {"cluster.db-shm", "cluster.db-wal", "cluster.db-mark"}  # SQLite's are empty
    assert not beside.get("cluster.db-wal")


def test_a_flipped_bit_is_noticed_or_means_nothing(path: Path) -> None:
    """Free space and counters that nobody reads may change; no object and no version may."""
    expected, whole = made(path), path.read_bytes()
    with opened(path) as file:
        marks = file.contents()
    randoms = random.Random(7)
    places = [*range(100), *(randoms.randrange(100, len(whole)) for _ in range(300))]
    noticed = 0
    for place in places:
        data = bytearray(whole)
        data[place] ^= 1 << randoms.randrange(8)
        path.write_bytes(data)
        try:
            with opened(path) as file:
                assert (file.contents(), list(file.rows())) == (marks, expected), f"byte {place}"
        except (StateCorrupt, Unavailable):
            noticed += 1
            assert path.read_bytes() == data
    assert noticed > 100


@pytest.mark.parametrize("missing", ["parent", "readable"])
def test_a_place_where_no_file_can_be_is_named(path: Path, missing: str) -> None:
    target = path / "no" / "such" / "folder.db" if missing == "parent" else path.parent
    with pytest.raises(Unavailable) as refused:
        if missing == "parent":
            log_file.create(target, 1)
        else:
            LogFile(target)
    assert str(target) in str(refused.value)


def test_an_older_format_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(path)

    def add_table(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE novelty (x INTEGER)")

    def fill_table(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO novelty VALUES (7)")

    monkeypatch.setattr(log_file, "MIGRATIONS", (*log_file.MIGRATIONS, add_table, fill_table))
    untouched = path.read_bytes()
    assert contents(path) == before
    assert path.read_bytes() == untouched, "reading migrates nothing"
    for _ in range(2):
        with opened(path, writing=True):
            pass
    assert contents(path) == before
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
        assert db.execute("SELECT x FROM novelty").fetchall() == [(7,)]


def test_a_migration_that_fails_leaves_the_older_format(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(path)

    def broken(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE novelty (x INTEGER)")
        db.execute("SELECT * FROM absent")

    with monkeypatch.context() as patch:
        patch.setattr(log_file, "MIGRATIONS", (*log_file.MIGRATIONS, broken))
        with pytest.raises(StateCorrupt), opened(path, writing=True):
            pass
    assert contents(path) == before
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'novelty'").fetchone() == (0,)


def test_the_first_format_stays_what_it_is() -> None:
    """Files of the first release exist: a change of format is a new entry at the end."""
    with closing(sqlite3.connect(":memory:")) as db:
        log_file.MIGRATIONS[0](db)
        tables = dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
    assert sorted(tables) == ["log", "mark"]
    columns = ["version", "at", "kind", "namespace", "name", "deleted", "previous", "body", "checksum"]
    assert [part.split()[0] for part in tables["log"].split("(", 1)[1].split(", ")] == columns
