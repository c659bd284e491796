import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.cluster.store import database_files, high_water_mark, log_file
from devlet.cluster.store.ledger import open_file
from devlet.cluster.store.log_file import Row
from devlet.cluster.store.repair import check, repair
from devlet.errors import StateCorrupt
from devlet.testing.fake_clock import FakeClock
from tests.unit.cluster.store.damaged_logs import FIRST, crashed, flip, flip_log, row

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MICROSECONDS = int(NOW.timestamp() * 1_000_000)


def reopened(path: Path) -> tuple[int, list[Row]]:
    """The version and the rows after a start, which writes."""
    with closing(open_file(path, FakeClock())) as file:
        contents, rows = file.contents(), list(file.rows())
        file.start_writing()
        return contents.last, rows


def test_a_log_that_was_left_open_is_sound(path: Path) -> None:
    rows = crashed(path)
    found = check(path)
    assert (found.objects, found.version, found.marked, found.tail.ignored) == (len(rows), rows[-1].version, True, 0)


def test_a_database_of_the_first_release_has_no_mark_and_is_sound(path: Path) -> None:
    rows = crashed(path)
    database_files.mark(path).unlink()
    assert not check(path).marked
    assert reopened(path) == (rows[-1].version, rows)
    assert check(path).marked


def test_a_damaged_mark_counts_as_none(path: Path) -> None:
    rows = crashed(path)
    database_files.mark(path).write_bytes(b"\xff" * 8192)
    assert not check(path).marked
    assert reopened(path) == (rows[-1].version, rows)


def test_a_mark_that_is_behind_raises_no_alarm(path: Path) -> None:
    rows = crashed(path, 10)
    older = database_files.mark(path).read_bytes()
    with closing(open_file(path, FakeClock())) as file:
        file.start_writing()
        file.append([row(200)])
        file.compact(104, 200, [101, 102])
        file.append([row(201)])
    database_files.mark(path).write_bytes(older)
    assert reopened(path) == (201, [*rows[2:], row(200), row(201)])


def test_an_unacknowledged_end_is_sound_and_reported(path: Path) -> None:
    rows = crashed(path)
    older = rows[-2].version
    mark = high_water_mark.read(database_files.mark(path))
    assert mark is not None
    # The last commit was cut off before its sync: so the mark was not written either.
    with closing(high_water_mark.MarkFile(database_files.mark(path))) as file:
        checksum = mark.total - _total(path, older)
        for _ in range(2):
            file.write(high_water_mark.Mark(older, mark.compacted, mark.rows - 1, mark.total - checksum))
    flip(database_files.log(path), database_files.log(path).stat().st_size - 100)
    found = check(path)
    assert (found.version, found.tail.lost) == (older, False)
    assert found.tail.ignored > 0


def _total(path: Path, until: int) -> int:
    with closing(log_file.connect(path, "ro")) as db:
        total: int = db.execute("SELECT sum(checksum) FROM log WHERE version <= ?", (until,)).fetchone()[0]
        return total


@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_a_damaged_log_is_refused_with_what_was_lost_and_repaired_up_to_the_damage(path: Path, share: float) -> None:
    rows = crashed(path)
    flip_log(path, share)
    with pytest.raises(StateCorrupt, match=f"acknowledged: 1.. to {rows[-1].version} are lost") as refused:
        check(path)
    assert f"devlet store repair --root {path.parent}" in str(refused.value)
    done = repair(path, NOW)
    kept = rows[: done.objects]
    assert done.lost == (f"versions {(kept[-1].version if kept else FIRST) + 1} to {rows[-1].version}",)
    assert reopened(path) == (MICROSECONDS, kept)
    assert check(path).marked


def test_a_damaged_log_without_a_mark_is_refused_by_the_commits_behind_the_damage(path: Path) -> None:
    rows = crashed(path)
    database_files.mark(path).unlink()
    flip_log(path, 0.5)
    with pytest.raises(StateCorrupt, match="write-ahead log is broken after version"):
        check(path)
    done = repair(path, NOW)
    assert "acknowledged versions above that are lost" in done.lost[0]
    assert reopened(path) == (MICROSECONDS, rows[: done.objects])


def test_a_log_that_is_gone_is_a_loss(path: Path) -> None:
    crashed(path)
    database_files.log(path).unlink()
    with pytest.raises(StateCorrupt, match="are lost"):
        check(path)


def test_an_older_copy_of_the_database_starts_after_a_repair_with_higher_versions(path: Path) -> None:
    crashed(path, 3)
    reopened(path)
    older = path.read_bytes()
    with closing(open_file(path, FakeClock())) as file:
        file.start_writing()
        file.append([row(MICROSECONDS + 10)])
    path.write_bytes(older)
    with pytest.raises(StateCorrupt):
        check(path)
    repair(path, NOW)
    assert reopened(path)[0] == MICROSECONDS + 10


def test_rows_that_vanish_are_a_loss_even_if_the_newest_is_there(path: Path) -> None:
    crashed(path)
    with closing(log_file.connect(path, "rw")) as db:
        db.execute("DELETE FROM log WHERE version = 110")
    with pytest.raises(StateCorrupt, match="its 29 rows up to version 130 are not the 30 that were acknowledged"):
        check(path)


def test_the_damaged_files_are_kept(path: Path) -> None:
    crashed(path)
    flip_log(path, 0.5)
    before = [each.read_bytes() for each in (path, database_files.log(path), database_files.mark(path))]
    done = repair(path, NOW)
    assert [copy.read_bytes() for copy in done.copies] == before
    reopened(path)
    assert [copy.read_bytes() for copy in done.copies] == before


def test_a_repair_that_was_interrupted_is_finished_at_the_next_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = crashed(path)
    flip_log(path, 0.5)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _only(os.replace, database_files.repaired(path).name, killed))
        with pytest.raises(KeyboardInterrupt):
            repair(path, NOW)
    assert not database_files.log(path).exists()
    version, kept = reopened(path)
    assert version == MICROSECONDS
    assert 5 < len(kept) < len(rows)


def _only(replace: object, source: str, killed: object) -> object:
    def patched(old: Path, new: Path) -> None:
        (killed if Path(old).name == source else replace)(old, new)  # type: ignore[operator]

    return patched


def test_a_database_in_which_nothing_can_be_read_is_left_as_it_is(path: Path) -> None:
    crashed(path)
    with closing(open_file(path, FakeClock())) as file:
        file.start_writing()
    with open(path, "r+b") as file_:
        file_.seek(100)
        file_.write(b"\xff" * (path.stat().st_size - 100))
    before = path.read_bytes()
    with pytest.raises(StateCorrupt, match=f"Move {path} away"):
        repair(path, NOW)
    assert path.read_bytes() == before


def test_a_foreign_file_is_not_repaired(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StateCorrupt, match=r"is not a database\. Move it away"):
        repair(path, NOW)
