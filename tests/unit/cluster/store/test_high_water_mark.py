import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from devlet.cluster.store import high_water_mark
from devlet.cluster.store.high_water_mark import Mark, MarkFile, first_version

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MICROSECONDS = int(NOW.timestamp() * 1_000_000)


@pytest.fixture
def path(root: Path) -> Path:
    return root / "cluster.db-mark"


@pytest.fixture
def file(path: Path) -> Iterator[MarkFile]:
    with closing(MarkFile(path)) as file:
        yield file


def test_a_missing_or_empty_file_has_no_mark(path: Path) -> None:
    assert high_water_mark.read(path) is None
    path.touch()
    assert high_water_mark.read(path) is None


def test_the_newest_mark_is_read(path: Path, file: MarkFile) -> None:
    for version in range(1, 6):
        file.write(Mark(version, 0, version, version * 10))
        assert high_water_mark.read(path) == Mark(version, 0, version, version * 10)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_removed_or_replaced_is_not_in_place(path: Path, file: MarkFile) -> None:
    assert file.is_in_place()
    path.unlink()
    assert not file.is_in_place()
    path.touch()
    assert not file.is_in_place()


def test_marks_continue_after_a_restart(path: Path) -> None:
    for version in (7, 8, 9):
        with closing(MarkFile(path)) as file:
            file.write(Mark(version, 1))
        assert high_water_mark.read(path) == Mark(version, 1)


def test_a_damaged_slot_leaves_the_mark_before_it(path: Path, file: MarkFile) -> None:
    file.write(Mark(1, 0))
    file.write(Mark(2, 0))
    whole = path.read_bytes()
    for at in range(0, 52):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert high_water_mark.read(path) == Mark(1, 0), f"byte {at}"


def test_a_file_in_which_both_slots_are_damaged_has_no_mark(path: Path, file: MarkFile) -> None:
    file.write(Mark(1, 0))
    file.write(Mark(2, 0))
    path.write_bytes(bytes(len(path.read_bytes())))
    assert high_water_mark.read(path) is None
    os.truncate(path, 10)
    assert high_water_mark.read(path) is None


def test_removing_what_was_added_gives_the_same_sum() -> None:
    mark = Mark(5, 0).added(7, [1 << 31, 17]).added(8, [3])
    assert mark == Mark(8, 0, 3, (1 << 31) + 20)
    assert mark.removed(7, [17, 1 << 31]) == Mark(8, 7, 1, 3)


@pytest.mark.parametrize(
    ("mark", "expected"),
    [(None, MICROSECONDS), (Mark(5, 0), MICROSECONDS), (Mark(MICROSECONDS + 9, 0), MICROSECONDS + 9)],
)
def test_a_new_database_starts_at_the_clock_and_above_the_mark(mark: Mark | None, expected: int) -> None:
    assert first_version(mark, NOW) == expected
