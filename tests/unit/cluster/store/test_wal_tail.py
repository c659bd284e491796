import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from devlet.cluster.store import log_file, wal_tail
from devlet.cluster.store.log_file import LogFile, Row
from devlet.cluster.store.wal_tail import Tail

PAGE = 8192
FRAME = 24 + PAGE
COMMITS = 6


def row(version: int) -> Row:
    return Row(version, 1_700_000_000, "configmaps", "default", f"object-{version}", False, 0, b'{"metadata":{}}')


@pytest.fixture
def crashed(root: Path) -> Iterator[Path]:
    """A database whose log has one row in each of its commits, as a process leaves it that is killed; no mark."""
    live = root / "live.db"
    log_file.create(live, 100)
    with closing(LogFile(live)) as file:
        file.start_writing()
        for version in range(101, 101 + COMMITS):
            file.append([row(version)])
        for suffix in ("", "-wal"):
            shutil.copy(f"{live}{suffix}", root / f"cluster.db{suffix}")
    yield root / "cluster.db"


def tail_of(path: Path) -> Tail:
    with closing(LogFile(path)) as file:
        list(file.rows())
        return file.tail()


def log_of(path: Path) -> Path:
    return path.with_name("cluster.db-wal")


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def frame(path: Path, number: int) -> int:
    """The offset of a frame, counted from the end with negative numbers."""
    count = (log_of(path).stat().st_size - 32) // FRAME
    return 32 + FRAME * (number % count)


def test_a_whole_log_has_no_tail(crashed: Path) -> None:
    found = tail_of(crashed)
    assert found.accepted >= COMMITS
    assert (found.ignored, found.lost) == (0, False)


def test_a_database_without_a_log_has_no_tail(crashed: Path) -> None:
    log_of(crashed).unlink()
    assert tail_of(crashed) == Tail()


def test_damage_below_a_later_commit_is_a_loss(crashed: Path) -> None:
    flip(log_of(crashed), frame(crashed, 1) + 24 + 100)
    found = tail_of(crashed)
    assert found.lost
    assert found.accepted + found.ignored == (log_of(crashed).stat().st_size - 32) // FRAME


def test_an_unfinished_commit_at_the_end_is_not_a_loss(crashed: Path) -> None:
    whole = tail_of(crashed)
    flip(log_of(crashed), frame(crashed, -1) + 24 + 100)  # a page that did not reach the disk
    found = tail_of(crashed)
    assert not found.lost
    assert found.ignored > 0
    assert found.accepted + found.ignored == whole.accepted


def test_a_log_that_was_cut_off_is_not_a_loss(crashed: Path) -> None:
    whole = tail_of(crashed)
    os.truncate(log_of(crashed), frame(crashed, -1) + 1000)
    found = tail_of(crashed)
    assert not found.lost
    assert found.accepted < whole.accepted


def test_frames_of_an_earlier_generation_are_not_a_loss(crashed: Path) -> None:
    """A log that begins again is written over the old one, whose frames stay behind it."""
    whole = log_of(crashed).read_bytes()
    with closing(LogFile(crashed)) as file:
        file.start_writing()
        assert file._writer is not None
        file._writer.execute("PRAGMA wal_checkpoint(RESTART)")
        file.append([row(500)])
        found = file.tail()
        assert log_of(crashed).stat().st_size == len(whole)
    assert (found.ignored, found.lost) == (0, False)


def test_an_unfinished_write_that_was_written_over_is_not_a_loss(crashed: Path) -> None:
    """The rest of the longer one stays behind the shorter one, with the same salts."""
    last = frame(crashed, -1)
    flip(log_of(crashed), last + 24 + 100)
    with closing(LogFile(crashed)) as file:
        file.start_writing()
        file.append([row(700)])
        assert not file.tail().lost


def test_a_log_whose_index_is_missing_says_nothing(crashed: Path) -> None:
    assert wal_tail.inspect(crashed, PAGE) == Tail()
