"""Watch a directory tree with inotify for entries that are added or removed.

`changes()` first returns everything that exists, and then the changes in their order. The same entry may be found more
than once: the content of a new directory is listed, and also reported by the kernel. The directory itself may be
missing, and may be removed and created again. Where the kernel cannot watch, the tree is listed repeatedly.
"""

import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio import to_thread
from inotify_simple import Event, INotify, flags

from devlet.kit.facts import facts

__all__ = ["Change", "DirWatch", "Found", "Gone", "Rescanned", "Settings"]

log = logging.getLogger(__name__)

_APPEARED = flags.CREATE | flags.MOVED_TO
_WENT = flags.DELETE | flags.MOVED_FROM
_ENDED = flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT | flags.IGNORED
_MASK = _APPEARED | _WENT | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds. Entries beyond a limit are not seen; a log line reports that."""

    rescan: float = 60.0  # mounts make no events
    poll: float = 1.0  # if the kernel has no watches left
    max_depth: int = 16  # 0 is the directory itself
    max_directories: int = 1024
    max_entries: int = 16_384  # in one directory


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that is not a directory exists. For a link, the status is that of its target."""

    path: Path
    status: os.stat_result


@dataclass(frozen=True, slots=True)
class Gone:
    """An entry was removed or renamed away; a directory with everything below it."""

    path: Path
    directory: bool = False


@dataclass(frozen=True, slots=True)
class Rescanned:
    """All existing entries follow. If events were lost, an entry may have been replaced by one that looks the same."""

    lost: bool = False


Change = Found | Gone | Rescanned


class DirWatch:
    """`skip` returns True for names of entries to ignore. With `contents`, a file is found again after a write.
    `levels` is how many levels of subdirectories to watch: 0 is only the directory's own entries, None is everything.
    Use it in one task, inside `with`."""

    def __init__(
        self,
        root: Path,
        *,
        skip: Callable[[str], bool] = lambda name: False,
        settings: Settings = Settings(),
        contents: bool = False,
        levels: int | None = None,
    ) -> None:
        self._root = root
        self._levels = levels
        self._mask = _MASK | (flags.CLOSE_WRITE if contents else 0)
        self._skip = skip
        self._settings = settings
        self._inotify: INotify | None = None
        self._folders: dict[int, Path] = {}  # by watch descriptor
        self._paths: set[Path] = set()  # the same directories
        self._anchor: int | None = None  # watches a directory above while the root is missing, or is a link
        self._blind = False  # the kernel does not watch all directories
        self._warned: set[str] = set()
        self._pending: list[Change] = []
        self._opened = False
        self._thread = anyio.CapacityLimiter(1)  # slow disks must not block the threads of others

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inotify is not None:
            self._inotify.close()

    async def changes(self) -> list[Change]:
        """Wait for changes since the last call, and return them. Cancelling a call loses no change."""
        if not self._opened:
            await to_thread.run_sync(self._open, limiter=self._thread)
        while not self._pending:
            readable = await self._readable()
            await to_thread.run_sync(self._collect if readable else self._rescan, limiter=self._thread)
        changes, self._pending = self._pending, []
        return changes

    async def _readable(self) -> bool:
        """Wait for events. Return False if it is time to list the tree without an event."""
        with anyio.move_on_after(self._settings.poll if self._blind else self._settings.rescan):
            if self._inotify is not None:
                await anyio.wait_readable(self._inotify)
                return True
            await anyio.sleep_forever()
        return False

    def _open(self) -> None:
        try:
            self._inotify = INotify(nonblocking=True)
        except OSError as e:
            self._warn("directory is polled, as inotify is not available", self._root, e)
        self._opened = True
        self._rescan()

    def _collect(self) -> None:
        assert self._inotify is not None
        for event in self._inotify.read(timeout=0):
            self._handle(event)

    def _handle(self, event: Event) -> None:
        if event.mask & flags.Q_OVERFLOW:
            log.warning("file events lost, looking at all files again", extra=facts(directory=self._root))
            self._rescan(lost=True)
        elif event.wd == self._anchor:
            self._look_above(event)
        elif (folder := self._folders.get(event.wd)) is None:
            pass  # an event of a watch that was removed
        elif event.mask & _ENDED:
            self._leave(folder)
            self._attach() if folder == self._root else self._look(folder)
        elif self._skip(event.name):
            pass
        elif event.mask & _WENT:
            self._leave(folder / event.name)
        elif event.mask & (_APPEARED | flags.CLOSE_WRITE):
            self._look(folder / event.name)

    def _rescan(self, lost: bool = False) -> None:
        before, self._folders, self._paths = self._folders, {}, set()
        self._blind = self._inotify is None
        self._pending.append(Rescanned(lost))
        self._attach()
        for descriptor in before.keys() - self._folders.keys() - {self._anchor}:
            self._unwatch(descriptor)

    def _attach(self) -> None:
        """Watch the tree. While it is missing, watch where the next directory on the way to it will appear."""
        if self._anchor is not None:
            self._unwatch(self._anchor)
            self._anchor = None
        while not self._enter(self._root) and self._climb():
            pass  # it may have appeared before the watch was there
        if os.path.islink(self._root):  # it may be replaced
            with suppress(OSError):
                self._anchor = self._add(self._root.parent)

    def _look_above(self, event: Event) -> None:
        """Handle an event of the anchor: the root was replaced, or a directory on the way to it appeared."""
        if not self._folders:
            self._attach()
        elif event.name == self._root.name:
            self._rescan()

    def _climb(self) -> bool:
        """Watch the closest existing directory above the root. Return False if it was watched already."""
        above = next(folder for folder in self._root.parents if os.path.isdir(folder))
        try:
            anchor = self._add(above)
        except OSError:
            self._blind = True
            return False
        before, self._anchor = self._anchor, anchor
        if before is not None and before != anchor:
            self._unwatch(before)
        return before != anchor

    def _look(self, path: Path) -> None:
        try:
            status = path.stat()
        except (OSError, ValueError):
            return  # gone again, or a link to nowhere
        if stat.S_ISDIR(status.st_mode):
            self._enter(path)
        else:
            self._pending.append(Found(path, status))

    def _enter(self, top: Path) -> bool:
        """Watch a directory and those below it. Return False if it does not exist."""
        if not os.path.isdir(top):  # `Path.is_dir` raises without the permission to look
            return False
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            if not self._watch(folder):
                continue
            for path, status in self._entries(folder):
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path)
                else:
                    self._pending.append(Found(path, status))
        return True

    def _watch(self, folder: Path) -> bool:
        """Watch a directory. Return False if it is over a limit, or was already seen under another path (links)."""
        depth = len(folder.parts) - len(self._root.parts)
        if self._levels is not None and depth > self._levels:
            return False
        if depth > self._settings.max_depth or len(self._folders) >= self._settings.max_directories:
            self._warn("directory ignored, there are too many or it is too deep", folder)
            return False
        try:
            known = self._folders.setdefault(self._descriptor(folder), folder)
        except OSError as e:
            log.debug("directory not watched", extra=facts(directory=folder, err=e))
            return False
        self._paths.add(known)
        return known == folder

    def _descriptor(self, folder: Path) -> int:
        """Return the descriptor of the watch, or a unique negative number if the kernel has no watches left."""
        try:
            if (descriptor := self._add(folder)) is not None:
                return descriptor
        except OSError as e:
            if e.errno != errno.ENOSPC:
                raise
            self._blind = True
            self._warn("directory is polled, as the kernel has no watches left", folder, e)
        status = folder.stat()
        return -((status.st_ino << 64) + status.st_dev) - 1

    def _entries(self, folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
        try:
            with os.scandir(folder) as listing:
                names = sorted(entry.name for entry in islice(listing, self._settings.max_entries + 1))
        except OSError as e:
            log.debug("directory not listed", extra=facts(directory=folder, err=e))
            return
        if len(names) > self._settings.max_entries:
            self._warn("directory has too many entries, not all are seen", folder)
        for name in names[: self._settings.max_entries]:
            if not self._skip(name):
                with suppress(OSError, ValueError):
                    yield folder / name, (folder / name).stat()

    def _leave(self, path: Path) -> None:
        directory = path in self._paths
        self._pending.append(Gone(path, directory))
        if directory:
            for descriptor in [d for d, folder in self._folders.items() if folder.is_relative_to(path)]:
                self._paths.discard(self._folders.pop(descriptor))
                self._unwatch(descriptor)

    def _add(self, folder: Path) -> int | None:
        return None if self._inotify is None else int(self._inotify.add_watch(folder, self._mask))

    def _unwatch(self, descriptor: int) -> None:
        if self._inotify is not None and descriptor >= 0:
            with suppress(OSError):  # the kernel drops the watch of a directory that is removed
                self._inotify.rm_watch(descriptor)

    def _warn(self, text: str, folder: Path, error: OSError | None = None) -> None:
        """Log a warning once for each text: a rescan would repeat it."""
        if text not in self._warned:
            self._warned.add(text)
            log.warning(text, extra=facts(directory=folder, err=error))
