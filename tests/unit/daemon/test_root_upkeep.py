import os
from pathlib import Path

import pytest

from devlet.daemon import root as root_directory
from devlet.daemon.root_upkeep import kept
from devlet.errors import InUse
from devlet.kit import file_lock
from devlet.kit.upkeep import Settings, Upkeep
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio


async def test_the_directories_the_lock_and_the_given_files_of_a_root_come_back(root: Path) -> None:
    root_directory.prepare(root)
    root_directory.lay_out(root)
    lock, file = root / root_directory.LOCK_FILE, root / "file"
    file.write_text("content")
    with file_lock.held(lock):
        async with kept(root, Upkeep(root, Settings(settle=0.01)), file.name):
            before = set(os.listdir(root))
            empty(root)

            async def names() -> set[str]:
                return set(os.listdir(root))

            assert await until(names, lambda found: found == before) == before
            assert file.read_text() == "content"
            with pytest.raises(InUse), file_lock.held(lock):
                pass


def empty(directory: Path) -> None:
    for path in directory.iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
