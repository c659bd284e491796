"""Real directories and the kernel's own events. `State` is what somebody who follows the changes knows."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from inotify_simple import INotify

from devlet.kit.dir_watch import Change, DirWatch, Found, Gone, Rescanned, Settings
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio


class State:
    """Applies every change to a set of paths, and keeps the changes."""

    def __init__(self, watch: DirWatch) -> None:
        self._watch = watch
        self.paths: set[Path] = set()
        self.log: list[Change] = []

    async def until(self, *paths: Path) -> None:
        with deadline():
            while self.paths != set(paths):
                await self.step()

    async def step(self) -> None:
        for change in await self._watch.changes():
            self.log.append(change)
            match change:
                case Rescanned():
                    self.paths = set()
                case Found():
                    self.paths.add(change.path)
                case Gone(directory=False):
                    self.paths.discard(change.path)
                case Gone():
                    self.paths = {path for path in self.paths if not path.is_relative_to(change.path)}


@pytest.fixture
def watch(root: Path) -> Iterator[DirWatch]:
    with DirWatch(root) as made:
        yield made


@pytest.fixture
def state(watch: DirWatch) -> State:
    return State(watch)


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


async def test_what_is_there_comes_first(root: Path, state: State) -> None:
    files = [touch(root / "a"), touch(root / "d" / "b"), touch(root / "d" / "e" / "c")]
    await state.step()
    assert state.log[0] == Rescanned(lost=False)
    assert state.paths == set(files)


async def test_an_empty_directory_is_reported_as_well(state: State) -> None:
    await state.step()
    assert state.log == [Rescanned(lost=False)]


async def test_new_entries_are_found_and_removed_ones_are_gone(root: Path, state: State) -> None:
    await state.step()
    a = touch(root / "a")
    await state.until(a)
    a.unlink()
    await state.until()
    assert state.log[-1] == Gone(a)


async def test_renaming_is_appearing_and_going(root: Path, state: State) -> None:
    elsewhere = Path(shutil.copytree(root, f"{root}.elsewhere"))
    try:
        a = touch(root / "a")
        await state.until(a)
        a.rename(root / "b")
        await state.until(root / "b")
        (root / "b").rename(elsewhere / "b")
        await state.until()
        (elsewhere / "b").rename(root / "c")
        await state.until(root / "c")
    finally:
        shutil.rmtree(elsewhere)


async def test_directories_that_are_made_later_are_watched_with_all_below(root: Path, state: State) -> None:
    await state.step()
    a = touch(root / "one" / "two" / "three" / "a")
    await state.until(a)
    b = touch(root / "one" / "two" / "b")
    await state.until(a, b)
    shutil.rmtree(root / "one")
    await state.until()
    assert Gone(root / "one", directory=True) in state.log


async def test_a_directory_that_is_renamed_is_followed_under_its_new_name_only(root: Path, state: State) -> None:
    a = touch(root / "old" / "deep" / "a")
    await state.until(a)
    (root / "old").rename(root / "new")
    await state.until(root / "new" / "deep" / "a")
    touch(root / "new" / "deep" / "b")
    await state.until(root / "new" / "deep" / "a", root / "new" / "deep" / "b")


async def test_a_directory_that_left_the_tree_is_no_longer_watched(root: Path, state: State) -> None:
    elsewhere = root.parent / f"{root.name}.left"
    touch(root / "d" / "a")
    await state.step()
    (root / "d").rename(elsewhere)
    try:
        await state.until()
        touch(elsewhere / "b")
        c = touch(root / "c")
        await state.until(c)
        assert not any(isinstance(change, Found) and change.path.name == "b" for change in state.log)
    finally:
        shutil.rmtree(elsewhere)


async def test_links_are_followed(root: Path, state: State) -> None:
    (root / ".target").mkdir()
    inside = touch(root / ".target" / "a")
    with DirWatch(root, skip=lambda name: name.startswith(".")) as watch:
        state = State(watch)
        (root / "file").symlink_to(inside)
        await state.until(root / "file")
        (root / "directory").symlink_to(root / ".target")
        await state.until(root / "file", root / "directory" / "a")
        touch(root / ".target" / "b")
        await state.until(root / "file", root / "directory" / "a", root / "directory" / "b")
        (root / "directory").unlink()
        await state.until(root / "file")
        (root / "nowhere").symlink_to(root / "absent")
        last = touch(root / "last")
        await state.until(root / "file", last)


async def test_a_link_in_the_place_of_the_directory_is_followed_until_it_is_replaced(root: Path) -> None:
    watched, target = root / "watched", root / "target"
    target.mkdir()
    watched.symlink_to(target)
    with DirWatch(watched, settings=Settings(rescan=3600)) as watch:
        state = State(watch)
        touch(target / "a")
        await state.until(watched / "a")
        touch(root / "beside")
        watched.unlink()
        await state.until()
        watched.mkdir()
        touch(watched / "b")
        await state.until(watched / "b")
        touch(target / "c")
        touch(watched / "d")
        await state.until(watched / "b", watched / "d")


async def test_links_in_a_circle_end(root: Path, state: State) -> None:
    (root / "d").mkdir()
    (root / "d" / "again").symlink_to(root)
    (root / "d" / "self").symlink_to(root / "d" / "self")
    a = touch(root / "d" / "a")
    await state.until(a)


async def test_skipped_names_are_neither_reported_nor_entered(root: Path) -> None:
    with DirWatch(root, skip=lambda name: name.startswith(".")) as watch:
        state = State(watch)
        touch(root / ".hidden" / "a")
        await state.step()
        touch(root / ".later" / "b")
        touch(root / ".c")
        touch(root / ".hidden" / "d")
        seen = touch(root / "seen")
        await state.until(seen)
        assert [change for change in state.log if not isinstance(change, Rescanned)] == [Found(seen, seen.stat())]


async def test_a_directory_that_is_removed_and_made_again_is_picked_up(root: Path) -> None:
    top = root / "x" / "y"
    touch(top / "a")
    with DirWatch(top) as watch:
        state = State(watch)
        await state.until(top / "a")
        shutil.rmtree(root / "x")
        await state.until()
        top.mkdir(parents=True)
        b = touch(top / "b")
        await state.until(b)
        top.rename(root / "x" / "z")
        await state.until()
        (root / "x" / "z").rename(top)
        await state.until(b)


async def test_a_directory_that_does_not_exist_yet_is_waited_for(root: Path) -> None:
    top = root / "one" / "two" / "three"
    with DirWatch(top) as watch:
        state = State(watch)
        await state.step()
        for folder in (root / "one", root / "one" / "two", top):
            folder.mkdir()
            with anyio.move_on_after(0.01):  # each step of the way may be seen alone
                await state.step()
        a = touch(top / "a")
        await state.until(a)


async def test_a_file_in_place_of_the_directory_is_not_watched(root: Path) -> None:
    top = touch(root / "top")
    with DirWatch(top) as watch:
        state = State(watch)
        await state.step()
        top.unlink()
        a = touch(top / "a")
        await state.until(a)


async def test_a_call_that_is_cancelled_loses_nothing(root: Path, watch: DirWatch) -> None:
    state = State(watch)
    for number in range(50):
        touch(root / str(number))
        with anyio.move_on_after(0.0005 * (number % 4)):
            await state.step()
    await state.until(*(root / str(number) for number in range(50)))


@pytest.fixture
def fast(root: Path) -> Iterator[Path]:
    """A directory in memory, if there is memory for it."""
    if not os.access("/dev/shm", os.W_OK):
        yield root
        return
    path = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def flood(path: Path) -> None:
    """More events than the kernel keeps for us."""
    for _ in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) // 2 + 1):
        path.touch()
        path.unlink()


async def test_events_that_are_lost_lead_to_a_new_look(fast: Path) -> None:
    with DirWatch(fast) as watch:
        state = State(watch)
        a = touch(fast / "a")
        await state.until(a)
        flood(fast / "b")
        b = touch(fast / "d" / "b")
        await state.until(a, b)
        assert Rescanned(lost=True) in state.log
        c = touch(fast / "d" / "c")
        await state.until(a, b, c)


async def test_it_looks_again_now_and_then_without_events(root: Path) -> None:
    with DirWatch(root, settings=Settings(rescan=0.01)) as watch:
        state = State(watch)
        touch(root / "a")
        for _ in range(3):
            await state.step()
        assert state.log.count(Rescanned(lost=False)) >= 2
        assert state.paths == {root / "a"}


async def test_without_inotify_the_tree_is_polled(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: INotify, **given: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(INotify, "__init__", refuse)
    monkeypatch.setattr(INotify, "__del__", lambda self: None, raising=False)
    with DirWatch(root, settings=Settings(poll=0.01)) as watch:
        state = State(watch)
        (root / "d").mkdir()
        (root / "d" / "again").symlink_to(root)
        a = touch(root / "d" / "a")
        await state.until(a)
        a.unlink()
        await state.until()


async def test_when_the_kernel_has_no_watches_left_the_tree_is_polled(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add: Callable[..., int] = INotify.add_watch
    refused = root / "d"

    def refuse(self: INotify, path: Path, mask: int) -> int:
        if path == refused:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return add(self, path, mask)

    monkeypatch.setattr(INotify, "add_watch", refuse)
    with DirWatch(root, settings=Settings(poll=0.01)) as watch:
        state = State(watch)
        a = touch(root / "d" / "a")
        await state.until(a)
        b = touch(root / "d" / "b")
        await state.until(a, b)
        shutil.rmtree(refused)
        await state.until()
    warnings = [record for record in caplog.records if "no watches left" in record.message]
    assert len(warnings) == 1


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(max_depth=1), {"a", "d/b"}),
        (Settings(max_directories=2), {"a", "d/b"}),
        (Settings(max_entries=1), {"a"}),
    ],
)
async def test_what_lies_beyond_a_limit_is_not_seen_and_that_is_logged(
    root: Path, settings: Settings, expected: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "d/b", "d/e/c"):
        touch(root / name)
    with DirWatch(root, settings=settings) as watch:
        state = State(watch)
        await state.step()
    if settings.max_entries > 1:
        assert {path.relative_to(root).as_posix() for path in state.paths} == expected
    else:
        assert len(state.paths) <= 1  # which entry is seen is the file system's choice
    assert any("too many" in record.message for record in caplog.records)


@pytest.mark.long
async def test_a_thousand_files_in_a_hundred_directories_are_followed(root: Path, state: State) -> None:
    await state.step()
    files = [touch(root / str(number % 100) / str(number)) for number in range(1000)]
    await state.until(*files)
    for number in range(100):
        shutil.rmtree(root / str(number))
    await state.until()


async def test_with_contents_a_file_that_was_written_to_is_found_again(root: Path) -> None:
    file = touch(root / "a")
    with DirWatch(root, contents=True) as watch:
        assert [each.path for each in await watch.changes() if isinstance(each, Found)] == [file]
        file.write_text("more")
        with deadline():
            assert [each.path for each in await watch.changes() if isinstance(each, Found)] == [file]


async def test_what_is_further_down_than_the_levels_is_not_looked_at(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with DirWatch(root, levels=1) as watch:
        state = State(watch)
        near, far = touch(root / "a" / "near"), touch(root / "a" / "b" / "far")
        await state.until(near)
        touch(far.parent / "another")
        last = touch(root / "a" / "last")
        await state.until(near, last)
        (root / "a" / "b" / "c").mkdir()
        last.unlink()
        await state.until(near)
    assert caplog.records == []
