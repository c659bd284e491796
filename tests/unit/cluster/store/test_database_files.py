from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.cluster.store import database_files

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def path(root: Path) -> Path:
    return root / "cluster.db"


def filled(path: Path) -> dict[str, bytes]:
    for suffix in ("", "-wal", "-shm", "-mark"):
        path.with_name(path.name + suffix).write_bytes(f"content{suffix}".encode())
    return contents(path)


def contents(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}


def test_without_a_repaired_database_nothing_changes(path: Path) -> None:
    before = filled(path)
    database_files.finish_repair(path)
    assert contents(path) == before


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_repaired_database_takes_the_place_of_the_damaged_one_and_its_log(path: Path, interrupted: bool) -> None:
    filled(path)
    database_files.repaired(path).write_bytes(b"new")
    if interrupted:
        database_files.remove_log(path)
    database_files.finish_repair(path)
    assert contents(path) == {"cluster.db": b"new", "cluster.db-mark": b"content-mark"}


def test_copies_stay_as_they_are_and_have_names_of_their_own(path: Path) -> None:
    filled(path)
    first = database_files.keep_copies(path, NOW)
    second = database_files.keep_copies(path, NOW)
    assert [copy.name for copy in first] == [f"cluster.db.damaged-20260102T030405Z{s}" for s in ("", "-wal", "-mark")]
    assert [copy.name for copy in second] == [
        f"cluster.db.damaged-20260102T030405Z-1{s}" for s in ("", "-wal", "-mark")
    ]
    with open(database_files.mark(path), "r+b") as mark:
        mark.write(b"CHANGED")
    assert [copy.read_bytes() for copy in first] == [b"content", b"content-wal", b"content-mark"]


def test_the_files_are_beside_the_database_that_a_link_leads_to(path: Path, root: Path) -> None:
    (root / "disk").mkdir()
    path.symlink_to(root / "disk" / "data.db")
    assert database_files.log(path) == (root / "disk" / "data.db-wal").resolve()
    assert database_files.mark(path) == (root / "disk" / "data.db-mark").resolve()
