"""Restore files and directories that were removed, and report anything else that is in their place.

Events of the file system start a check of everything that is kept, and so does a timer, because events can be lost.
What devlet did not create is never removed or written through. It is reported as a problem until it is moved away.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from devlet.errors import Unavailable
from devlet.kit import dir_watch
from devlet.kit.dir_watch import Change, DirWatch, Rescanned
from devlet.kit.facts import facts

__all__ = ["Kept", "Settings", "Upkeep", "identity"]

log = logging.getLogger(__name__)

LEVELS = 1  # everything that is kept is in the directory itself or in a subdirectory


class Kept(Protocol):
    @property
    def path(self) -> Path: ...

    async def restore(self) -> str:
        """Restore it if it was removed. Return what was done as the text of a log line; an empty string if nothing was.

        Raise Unavailable, with the reason, if it cannot be restored."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    settle: float = 0.1  # from an event to the repair: `rm -r` removes a directory after its content
    look: float = 10.0  # between checks without an event


class Upkeep:
    """Restores things in the order in which they were added, so add a directory before what is in it."""

    def __init__(self, root: Path, settings: Settings = Settings()) -> None:
        self._root = root
        self._settings = settings
        self._identity = identity(root)
        self._kept: dict[Path, Kept] = {}
        self._problems: dict[Path, str] = {}

    def problem(self) -> str | None:
        """Return the first thing that is wrong and cannot be repaired, or None."""
        return next(iter(self._problems.values()), None)

    @contextmanager
    def keeping(self, *things: Kept) -> Iterator[None]:
        """Keep these things in place while the block runs."""
        self._kept.update((each.path, each) for each in things)
        try:
            yield
        finally:
            for each in things:
                del self._kept[each.path]
                self._problems.pop(each.path, None)

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Put back what is removed, until cancelled. Ready when removals are noticed."""
        settings = dir_watch.Settings(rescan=self._settings.look)
        with DirWatch(self._root, skip=_is_hidden, levels=LEVELS, settings=settings) as watch:
            await watch.changes()
            task_status.started()
            while True:
                if self._concerns(await watch.changes()):
                    await anyio.sleep(self._settings.settle)
                    await self.restore()

    def _concerns(self, changes: Collection[Change]) -> bool:
        """Return True if one of the changes is about something that is kept, or if changes may have been lost."""
        for change in changes:
            if isinstance(change, Rescanned) or change.path in self._kept:
                return True
            if any(path.is_relative_to(change.path) for path in self._kept):
                return True
        return False

    async def restore(self) -> None:
        """Check everything that is kept, and put back what was removed. If the root was replaced, put nothing back."""
        if self._identity != identity(self._root):
            self._has_problem(self._root, f"{self._root} was removed or replaced while devlet runs: restart devlet")
            return
        self._is_in_order(self._root)
        for path, kept in list(self._kept.items()):
            try:
                done = await kept.restore()
            except Unavailable as e:
                self._has_problem(path, str(e))
                continue
            if done:
                log.warning(done, extra=facts(path=path))
                self._problems.pop(path, None)
            else:
                self._is_in_order(path)

    def _has_problem(self, path: Path, problem: str) -> None:
        """Record the problem, and log it once, not at each check."""
        if self._problems.get(path) != problem:
            self._problems[path] = problem
            log.error("cannot be repaired", extra=facts(path=path, err=problem))

    def _is_in_order(self, path: Path) -> None:
        if self._problems.pop(path, None) is not None:
            log.info("in order again", extra=facts(path=path))


def identity(path: Path, look: Callable[[Path], os.stat_result] = os.stat) -> tuple[int, int] | None:
    """Return the device and inode of what is there, or None if nothing is, or it cannot be looked at."""
    try:
        found = look(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_hidden(name: str) -> bool:
    return name.startswith(".")
