import os
from pathlib import Path

import pytest

from devlet.daemon import root as root_directory
from devlet.daemon.root_upkeep import CheckedFile, kept
from devlet.errors import InUse
from devlet.kit import file_lock
from devlet.kit.kept_files import KeptFile
from devlet.kit.upkeep import Settings, Upkeep
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio


async def test_the_directories_the_lock_and_the_given_files_of_a_root_come_back(root: Path) -> None:
    root_directory.prepare(root)
    root_directory.lay_out(root)
    lock, file = root / root_directory.LOCK_FILE, root / "file"
    file.write_text("content")
    with file_lock.held(lock):
        async with kept(root, Upkeep(root, Settings(settle=0.01)), KeptFile(file)):
            before = set(os.listdir(root))
            empty(root)

            async def names() -> set[str]:
                return set(os.listdir(root))

            assert await until(names, lambda found: found == before) == before
            assert file.read_text() == "content"
            with pytest.raises(InUse), file_lock.held(lock):
                pass


async def test_a_file_that_cannot_be_put_back_is_checked_by_its_owner_as_soon_as_it_is_removed(root: Path) -> None:
    root_directory.prepare(root)
    root_directory.lay_out(root)
    file, found = root / "database", []
    file.touch()
    checked = CheckedFile(file, lambda: found.append(file.exists()))
    with file_lock.held(root / root_directory.LOCK_FILE):
        async with kept(root, Upkeep(root, Settings(settle=0.01, look=600)), checked):
            file.unlink()

            async def last() -> bool:
                return bool(found) and not found[-1]

            await until(last)
            assert not file.exists()


def empty(directory: Path) -> None:
    for path in directory.iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
