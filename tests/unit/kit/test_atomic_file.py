import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.kit import atomic_file


def test_the_new_content_replaces_the_old(tmp_path: Path) -> None:
    file = tmp_path / "state"
    atomic_file.write(file, b"one")
    atomic_file.write(file, b"two")
    assert file.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        atomic_file.write(tmp_path / "state", b"", mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == mode


@pytest.mark.parametrize(("durable", "syncs"), [(True, 2), (False, 0)])
def test_file_and_directory_are_synced_if_it_is_to_be_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, syncs: int
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    atomic_file.write(tmp_path / "state", b"new", durable=durable)
    assert (tmp_path / "state").read_bytes() == b"new"
    assert len(synced) == syncs


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()  # a file cannot replace a directory
    with pytest.raises(OSError):
        atomic_file.write(tmp_path / "state", b"new")
    assert os.listdir(tmp_path) == ["state"]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    file = tmp_path / "state"
    contents = [bytes([letter]) * 200_000 for letter in b"ab"]
    atomic_file.write(file, contents[0])
    done = threading.Event()

    def write() -> None:
        for turn in range(20):
            atomic_file.write(file, contents[turn % 2])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(file.read_bytes())
    writer.join()
    assert seen <= set(contents)


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".state.x1.tmp", ".state.x2.tmp", ".other.x.tmp", "state", ".state"):
        (tmp_path / name).touch()
    assert atomic_file.remove_leftovers(tmp_path / "state") == 2
    assert sorted(os.listdir(tmp_path)) == [".other.x.tmp", ".state", "state"]


@given(st.binary(max_size=10_000))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    atomic_file.write(file, content)
    assert file.read_bytes() == content
