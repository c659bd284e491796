from contextlib import closing
from pathlib import Path

import pytest

from devlet.cluster.store import log_file, salvage
from devlet.cluster.store.log_file import LogFile
from devlet.errors import StateCorrupt
from tests.unit.cluster.store.damaged_logs import FIRST, crashed, flip_log, row

PAGE = 8192


def test_a_whole_log_is_read_completely(path: Path) -> None:
    rows = crashed(path)
    found = salvage.best(path)
    assert (found.problem, found.lost, found.version, found.objects) == ("", [], rows[-1].version, rows)


def test_only_the_newest_version_of_an_object_that_was_not_deleted_is_an_object(path: Path) -> None:
    rows = [row(101, "a"), row(102, "a"), row(103, "b"), row(104, "b", deleted=True)]
    log_file.create(path, FIRST, rows)
    assert salvage.best(path).objects == [rows[1]]


def test_everything_before_the_damage_in_the_log_is_kept(path: Path) -> None:
    rows = crashed(path)
    flip_log(path, 0.5)
    found = salvage.best(path)
    assert 5 < len(found.objects) < len(rows)
    assert found.objects == rows[: len(found.objects)]
    assert "are lost" in found.problem


def test_damage_in_a_log_that_was_copied_into_the_database_loses_nothing(path: Path) -> None:
    rows = crashed(path, checkpointed=True)
    flip_log(path, 0.5)
    found = salvage.best(path)
    assert (found.problem, found.objects) == ("", rows)


@pytest.mark.parametrize("pages", [1, 4])
def test_what_is_on_other_pages_than_the_damaged_ones_is_kept(path: Path, pages: int) -> None:
    rows = [row(101 + 1000 * i) for i in range(40)]
    log_file.create(path, FIRST, rows)
    data = bytearray(path.read_bytes())
    leaves = [at for at in range(PAGE, len(data), PAGE) if data[at] == 0x0D and b"object-" in data[at : at + PAGE]]
    for at in leaves[5 : 5 + pages]:
        data[at : at + 12] = b"\xff" * 12
    path.write_bytes(data)
    found = salvage.best(path)
    assert len(rows) - 4 * pages <= len(found.objects) < len(rows)
    assert {rows[0], rows[-1]} <= set(found.objects) <= set(rows)
    assert found.lost


def test_a_row_that_does_not_match_its_checksum_is_left_out(path: Path) -> None:
    rows = [row(101, "a"), row(102, "b")]
    log_file.create(path, FIRST, rows)
    path.write_bytes(path.read_bytes().replace(b"configmapsdefaultb", b"configmapsdefaultc"))
    found = salvage.best(path)
    assert (found.objects, found.lost) == ([rows[0]], ["version 102"])


def test_a_row_that_does_not_hold_an_object_is_left_out(path: Path) -> None:
    broken = row(102)._replace(body=b"{")
    log_file.create(path, FIRST, [row(101), broken])
    assert salvage.best(path).objects == [row(101)]
    with closing(LogFile(path)), pytest.raises(StateCorrupt, match="version 102"):
        salvage.check_body(path, broken)
