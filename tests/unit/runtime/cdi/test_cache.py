import json
import os
import threading
from pathlib import Path

import anyio
import pytest

from devlet.runtime.cdi.cache import Cache, CurrentSpecs
from devlet.runtime.cdi.registry import Registry
from devlet.runtime.cdi.spec_dir import Settings
from devlet.testing.waiting import until

SECOND = 1_000_000_000


def text(value: str = "1", name: str = "a", kind: str = "v/c") -> str:
    devices = [{"name": name, "containerEdits": {"env": [f"A={value}"]}}]
    return json.dumps({"cdiVersion": "0.3.0", "kind": kind, "devices": devices})


def values(registry: Registry) -> dict[str, tuple[str, ...]]:
    return {name: known.device.container_edits.env for name, known in registry.devices.items()}


def errors(registry: Registry) -> dict[str, tuple[str, ...]]:
    return {path.name: texts for path, texts in registry.errors.items()}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    low, high = tmp_path / "low", tmp_path / "high"
    low.mkdir()
    high.mkdir()
    return low, high


@pytest.mark.spec("DN-7.3.2")
def test_devices_of_all_directories_are_known_and_the_later_one_takes_precedence(folders: tuple[Path, Path]) -> None:
    low, high = folders
    (low / "x.json").write_text(text("low"))
    (low / "y.yaml").write_text(text("low", "b"))
    (high / "x.json").write_text(text("high"))
    assert values(Cache(folders).refresh()) == {"v/c=a": ("A=high",), "v/c=b": ("A=low",)}
    assert values(Cache([high, low]).refresh())["v/c=a"] == ("A=low",)


@pytest.mark.spec("DN-7.3.4")
def test_a_broken_file_or_directory_does_not_affect_the_others(folders: tuple[Path, Path], tmp_path: Path) -> None:
    low, high = folders
    (low / "x.json").write_text(text())
    (low / "bad.json").write_text("{")
    (low / "large.json").write_text(text() + " " * 200)
    (low / "nowhere.json").symlink_to("gone")
    (low / "circle.json").symlink_to("circle.json")
    os.mkfifo(low / "pipe.json")
    (tmp_path / "file").touch()
    cache = Cache([tmp_path / "missing", tmp_path / "file", low, high], settings=Settings(max_bytes=200))
    for _ in range(2):
        registry = cache.refresh()
        assert list(registry.devices) == ["v/c=a"]
        assert sorted(errors(registry)) == [
            "bad.json",
            "circle.json",
            "file",
            "large.json",
            "nowhere.json",
            "pipe.json",
        ]
        assert all(str(path) in texts[0] for path, texts in registry.errors.items())


def test_created_changed_and_removed_files_are_noticed(folders: tuple[Path, Path]) -> None:
    low, _ = folders
    cache = Cache(folders)
    assert cache.refresh() == Registry()
    (low / "x.json").write_text(text("1"))
    assert values(cache.refresh()) == {"v/c=a": ("A=1",)}
    (low / "x.json").write_text(text("2"))
    assert values(cache.refresh()) == {"v/c=a": ("A=2",)}
    (low / "x.json").write_text("{")
    assert (values(cache.refresh()), list(errors(cache.refresh()))) == ({}, ["x.json"])
    (low / "x.json").unlink()
    assert cache.refresh() == Registry()


def test_the_directories_are_listed(folders: tuple[Path, Path]) -> None:
    assert Cache(list(folders)).directories == folders


def test_a_file_that_is_replaced_by_a_rename_is_noticed(folders: tuple[Path, Path]) -> None:
    low, _ = folders
    (low / "x.json").write_text(text("1"))
    cache = Cache(folders)
    cache.refresh()
    (low / "x.tmp").write_text(text("2"))
    (low / "x.tmp").rename(low / "x.json")
    assert values(cache.refresh()) == {"v/c=a": ("A=2",)}


def test_a_conflict_ends_with_one_of_its_files(folders: tuple[Path, Path]) -> None:
    low, _ = folders
    (low / "x.json").write_text(text("1"))
    (low / "y.json").write_text(text("2"))
    cache = Cache(folders)
    assert list(cache.refresh().conflicts) == ["v/c=a"]
    (low / "x.json").unlink()
    assert (values(cache.refresh()), cache.refresh().errors) == ({"v/c=a": ("A=2",)}, {})


def test_without_a_change_the_registry_is_the_same_object(folders: tuple[Path, Path]) -> None:
    low, _ = folders
    (low / "x.json").write_text(text())
    (low / "bad.json").write_text("{")
    cache = Cache(folders)
    first = cache.refresh()
    assert cache.refresh() is first
    (low / "y.json").write_text(text("1", "b"))
    assert cache.refresh() is not first
    assert list(first.devices) == ["v/c=a"]


@pytest.fixture
def written(folders: tuple[Path, Path]) -> Path:
    path = folders[0] / "x.json"
    path.write_text(text("1"))
    return path


def test_a_settled_file_is_not_read_again(written: Path) -> None:
    later = written.stat().st_ctime_ns + 3 * SECOND
    cache = Cache([written.parent], now=lambda: later)
    specs = {known.file.path: known.file.spec for known in cache.refresh().devices.values()}
    written.parent.joinpath("y.json").write_text(text("1", "b"))
    again = cache.refresh().devices["v/c=a"].file.spec
    assert again is specs[written]


def test_a_recently_changed_file_is_read_again_even_with_the_same_stamp(written: Path) -> None:
    soon = written.stat().st_ctime_ns + SECOND
    cache = Cache([written.parent], now=lambda: soon)
    first = cache.refresh().devices["v/c=a"].file.spec
    written.parent.joinpath("y.json").write_text(text("1", "b"))
    again = cache.refresh().devices["v/c=a"].file.spec
    assert again == first and again is not first


pytestmark = pytest.mark.anyio


def write(folder: Path, name: str) -> None:
    device = {"name": name, "containerEdits": {"env": ["A=1"]}}
    spec = {"cdiVersion": "0.5.0", "kind": "v/c", "devices": [device]}
    (folder / f"{name}.json").write_text(json.dumps(spec))


class HeldCache(Cache):
    """A cache whose refresh waits for the test, and that counts refreshes and how many ran at the same time."""

    def __init__(self, folder: Path) -> None:
        super().__init__([folder])
        self.let = threading.Semaphore(0)
        self.looks = 0
        self.looking = 0
        self.most = 0

    async def is_looking(self) -> bool:
        return self.looking == 1

    def refresh(self) -> Registry:
        self.looks += 1
        self.looking += 1
        self.most = max(self.most, self.looking)
        assert self.let.acquire(timeout=60)
        found = super().refresh()
        self.looking -= 1
        return found


async def test_a_spec_that_was_written_before_the_call_is_in_the_result(tmp_path: Path) -> None:
    specs = CurrentSpecs(Cache([tmp_path]))
    assert (await specs.registry()).devices == {}
    write(tmp_path, "a")
    assert list((await specs.registry()).devices) == ["v/c=a"]


async def test_calls_during_a_refresh_share_the_next_one(tmp_path: Path) -> None:
    cache = HeldCache(tmp_path)
    specs = CurrentSpecs(cache)
    answers: list[list[str]] = []

    async def ask() -> None:
        answers.append(list((await specs.registry()).devices))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await until(cache.is_looking)
        for _ in range(20):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        write(tmp_path, "late")
        cache.let.release()
        cache.let.release()
    assert len(answers) == 21
    assert all(answer == ["v/c=late"] for answer in answers[1:])
    assert (cache.looks, cache.most) == (2, 1)


async def test_a_cancelled_call_does_no_harm(tmp_path: Path) -> None:
    cache = HeldCache(tmp_path)
    specs = CurrentSpecs(cache)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(specs.registry)
        await until(cache.is_looking)
        tasks.cancel_scope.cancel()
        cache.let.release()
    write(tmp_path, "a")
    cache.let.release()
    assert list((await specs.registry()).devices) == ["v/c=a"]
