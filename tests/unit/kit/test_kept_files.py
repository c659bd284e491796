import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from devlet.errors import InUse, Unavailable
from devlet.kit import file_lock
from devlet.kit.kept_files import KeptDirectory, KeptFile, KeptLock

pytestmark = pytest.mark.anyio


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_removed_directory_is_created_again_with_its_mode_whatever_the_umask_is(root: Path) -> None:
    path = root / "d"
    path.mkdir()
    path.chmod(0o757)
    kept = KeptDirectory(path)
    path.rmdir()
    assert await kept.restore() == "removed directory created again"
    assert mode(path) == 0o757
    assert await kept.restore() == ""


async def test_a_directory_that_was_replaced_or_changed_by_its_owner_is_left_alone(root: Path) -> None:
    path = root / "d"
    path.mkdir()
    kept = KeptDirectory(path)
    path.rename(root / "away")
    path.mkdir(0o711)
    assert await kept.restore() == ""
    assert mode(path) == 0o711


def to_a_link(path: Path) -> None:
    (path.parent / "target").mkdir()
    path.symlink_to("target")


@pytest.mark.parametrize(
    ("what", "place"), [("a file", Path.touch), ("a symbolic link", to_a_link), ("a pipe", os.mkfifo)]
)
async def test_what_is_in_the_place_of_a_directory_is_left_alone_and_named(
    what: str, place: Callable[[Path], None], root: Path
) -> None:
    path = root / "d"
    path.mkdir()
    kept = KeptDirectory(path)
    path.rmdir()
    place(path)
    before = path.lstat()
    with pytest.raises(Unavailable, match=f"{path} is {what}, not the directory that devlet needs: move it away"):
        await kept.restore()
    assert path.lstat() == before
    assert not (root / "target").exists() or list((root / "target").iterdir()) == []


async def test_a_directory_behind_a_link_may_stay_there_but_not_behind_another(root: Path) -> None:
    for name in ("one", "two"):
        (root / name).mkdir()
    path = root / "d"
    path.symlink_to("one")
    kept = KeptDirectory(path)
    assert await kept.restore() == ""
    path.unlink()
    path.symlink_to("two")
    with pytest.raises(Unavailable, match="is a symbolic link"):
        await kept.restore()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
async def test_a_directory_of_another_user_is_refused(root: Path) -> None:
    (root / "d").mkdir()
    kept = KeptDirectory(root / "d")
    os.chown(root / "d", 65534, -1)
    with pytest.raises(Unavailable, match="belongs to uid 65534"):
        await kept.restore()


async def test_a_directory_that_cannot_be_created_again_is_named(root: Path) -> None:
    (root / "a" / "d").mkdir(parents=True)
    kept = KeptDirectory(root / "a" / "d")
    (root / "a").rename(root / "away")
    with pytest.raises(Unavailable, match=f"{root}/a/d was removed and cannot be created again: No such file"):
        await kept.restore()
    (root / "a").touch()
    with pytest.raises(Unavailable, match=f"{root}/a/d cannot be looked at: Not a directory"):
        await kept.restore()


async def test_a_removed_file_is_written_again_with_its_content_and_mode(root: Path) -> None:
    path = root / "f"
    path.write_text("content")
    path.chmod(0o640)
    kept = KeptFile(path)
    assert await kept.restore() == ""
    path.unlink()
    assert await kept.restore() == "removed file written again"
    assert (path.read_text(), mode(path)) == ("content", 0o640)
    path.write_text("changed")
    assert await kept.restore() == ""
    assert path.read_text() == "changed"


async def test_a_file_is_not_written_through_a_link(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "f").write_text("secret")
    kept = KeptFile(root / "d" / "f")
    (root / "d").rename(root / "away")
    (root / "target").mkdir()
    (root / "d").symlink_to("target")
    with pytest.raises(
        Unavailable, match=f"{root}/d/f was removed and cannot be written again: {root}/d is in the way"
    ):
        await kept.restore()
    assert list((root / "target").iterdir()) == []


async def test_a_removed_lock_file_is_created_again_and_held(root: Path) -> None:
    path = root / "lock"
    with file_lock.held(path):
        kept = KeptLock(path)
        assert await kept.restore() == ""
        for _ in range(2):
            path.unlink()
            assert await kept.restore() == "removed lock file created again"
            with pytest.raises(InUse, match=f"process {os.getpid()}"):
                file_lock.acquire(path)
        kept.close()
        kept.close()
    os.close(file_lock.acquire(path))


async def test_a_lock_that_another_process_has_taken_is_a_problem(root: Path) -> None:
    path = root / "lock"
    with file_lock.held(path):
        kept = KeptLock(path)
        path.unlink()
        with file_lock.held(path):
            with pytest.raises(Unavailable, match=f"{path} was removed or replaced: .* is in use by process"):
                await kept.restore()
