"""Upkeep of a root while a daemon runs on it.

It is a module of its own because commands import `root`, which must load fast.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from devlet.daemon.root import LAYOUT, LOCK_FILE
from devlet.kit.kept_files import KeptDirectory, KeptFile, KeptLock
from devlet.kit.parts import running
from devlet.kit.upkeep import Upkeep

__all__ = ["kept"]


@asynccontextmanager
async def kept(root: Path, upkeep: Upkeep, *files: str) -> AsyncIterator[None]:
    """Run the upkeep of a root that is laid out, with its directories, its lock and these files."""
    directories = [KeptDirectory(root / name) for name in LAYOUT]
    with closing(KeptLock(root / LOCK_FILE)) as lock:
        with upkeep.keeping(*directories, lock, *(KeptFile(root / name) for name in files)):
            async with running(upkeep.run):
                yield
