import os
from pathlib import Path

import pytest

from devlet.errors import InvalidInput, NotFound
from devlet.runtime.cdi.spec_dir import DEFAULT_DIRECTORIES, Settings, list_files, read, stamp

SPEC = b'{"cdiVersion":"0.3.0","kind":"v/c","devices":[{"name":"a","containerEdits":{"env":["A=1"]}}]}'


@pytest.mark.spec("DN-7.3.1")
def test_the_default_directories_are_those_of_runtimes() -> None:
    assert DEFAULT_DIRECTORIES == (Path("/etc/cdi"), Path("/var/run/cdi"))


@pytest.mark.spec("DN-7.3.1")
def test_only_json_and_yaml_files_of_the_directory_itself_count(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "c.yml", "d.json.tmp", "json", ".e.json"):
        (tmp_path / name).touch()
    (tmp_path / "f.json").mkdir()
    (tmp_path / "f.json" / "g.json").touch()
    assert [path.name for path in list_files(tmp_path)] == [".e.json", "a.json", "b.yaml"]


def test_a_missing_directory_has_no_files(tmp_path: Path) -> None:
    assert list_files(tmp_path / "gone") == []


def test_a_directory_that_cannot_be_listed_or_has_too_many_entries_is_an_error(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.txt").touch()
    with pytest.raises(InvalidInput, match="more than 2 files"):
        list_files(tmp_path, Settings(max_entries=2))
    with pytest.raises(InvalidInput, match=r"0\.txt: Not a directory"):
        list_files(tmp_path / "0.txt")


def test_a_file_is_read_with_its_stamp(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(SPEC)
    found, spec = read(path)
    assert (found, spec.kind) == (stamp(path), "v/c")
    path.write_bytes(SPEC + b" ")
    assert stamp(path) != found


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(SPEC)
    (tmp_path / "a.json").symlink_to("real")
    assert read(tmp_path / "a.json")[1].kind == "v/c"


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(SPEC.replace(b"A=1", b"A"))
    with pytest.raises(InvalidInput, match=r"a\.json: devices\[0\]\.containerEdits\.env\[0\]: must be NAME=value"):
        read(path)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(SPEC)
    assert read(path, Settings(max_bytes=len(SPEC)))
    with pytest.raises(InvalidInput, match=f"larger than {len(SPEC) - 1} bytes"):
        read(path, Settings(max_bytes=len(SPEC) - 1))


def test_a_pipe_or_directory_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "real").mkdir()
    (tmp_path / "b.json").symlink_to("real")
    for name, text in (("a.json", "not a file"), ("b.json", "Is a directory|not a file")):
        with pytest.raises(InvalidInput, match=text):
            read(tmp_path / name)


def test_a_removed_file_is_not_found(tmp_path: Path) -> None:
    for ask in (read, stamp):
        with pytest.raises(NotFound):
            ask(tmp_path / "gone.json")


def test_a_file_that_cannot_be_accessed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("a.json")
    for ask in (read, stamp):
        with pytest.raises(InvalidInput, match="symbolic links"):
            ask(tmp_path / "a.json")
