"""Upkeep of a root while a daemon runs on it.

Separate from `root`, which commands import and which must load fast.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from devlet.daemon.root import LAYOUT, LOCK_FILE
from devlet.kit.kept_files import KeptDirectory, KeptLock
from devlet.kit.parts import running
from devlet.kit.upkeep import Kept, Upkeep

__all__ = ["CheckedFile", "kept"]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that cannot be restored. Its owner checks whether it exists and reports problems."""

    path: Path
    check: Callable[[], None]

    async def restore(self) -> str:
        self.check()
        return ""


@asynccontextmanager
async def kept(root: Path, upkeep: Upkeep, *files: Kept) -> AsyncIterator[None]:
    """Run the upkeep of a root that is laid out: its directories, its lock and these files."""
    directories = [KeptDirectory(root / name) for name in LAYOUT]
    with closing(KeptLock(root / LOCK_FILE)) as lock:
        with upkeep.keeping(*directories, lock, *files):
            async with running(upkeep.run):
                yield
