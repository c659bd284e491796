"""Directories and files that devlet puts back when they were removed: see `upkeep`.

A directory is created again with the mode that it had. A file is written again with the content and the mode that it
had at the start, so this is for files that do not change. Anything else that has the name is left alone.
"""

import os
import stat
from pathlib import Path

from anyio import to_thread

from devlet.errors import DevletError, Unavailable
from devlet.kit import atomic_file, file_lock
from devlet.kit.upkeep import identity

__all__ = ["KeptDirectory", "KeptFile", "KeptLock", "kind", "look"]

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFREG: "a file",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
}


def look(path: Path) -> os.stat_result | None:
    """Return the status of the path without following a symbolic link; None if nothing is there. Raise Unavailable if
    that cannot be found out."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
    except OSError as e:
        raise Unavailable(f"{path} cannot be looked at: {e.strerror or e}") from e


def kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "a device")


class KeptDirectory:
    """A directory that exists now. If the path is a symbolic link now, the same link may stay in its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mode = stat.S_IMODE(path.stat().st_mode)
        self._link = _link(path)

    async def restore(self) -> str:
        found = look(self.path)
        if found is None:
            await to_thread.run_sync(self._create)
            return "removed directory created again"
        if self._link and self._link == _link(self.path) and self.path.is_dir():
            return ""
        if not stat.S_ISDIR(found.st_mode):
            raise Unavailable(
                f"{self.path} is {kind(found.st_mode)}, not the directory that devlet needs: move it away"
            )
        if found.st_uid not in (0, os.geteuid()):
            raise Unavailable(f"{self.path} belongs to uid {found.st_uid}: it must belong to uid {os.geteuid()}")
        return ""

    def _create(self) -> None:
        try:
            self.path.mkdir(0o700)
            self.path.chmod(self._mode)
        except OSError as e:
            raise Unavailable(f"{self.path} was removed and cannot be created again: {e.strerror or e}") from e


class KeptFile:
    """A file that exists now."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = path.read_bytes()
        self._mode = stat.S_IMODE(path.stat().st_mode)

    async def restore(self) -> str:
        if look(self.path) is not None:
            return ""
        directory = look(self.path.parent)
        if directory is None or not stat.S_ISDIR(directory.st_mode):
            raise Unavailable(f"{self.path} was removed and cannot be written again: {self.path.parent} is in the way")
        try:
            await to_thread.run_sync(atomic_file.write, self.path, self._content, self._mode)
        except OSError as e:
            raise Unavailable(f"{self.path} was removed and cannot be written again: {e.strerror or e}") from e
        return "removed file written again"


class KeptLock:
    """A lock file that this process holds. Without it, a second process could start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = identity(path)
        self._fd: int | None = None

    async def restore(self) -> str:
        if identity(self.path, os.lstat) == self._identity:
            return ""
        try:
            fd = file_lock.acquire(self.path)
        except DevletError as e:
            raise Unavailable(f"{self.path} was removed or replaced: {e}") from e
        self.close()
        self._fd, self._identity = fd, identity(self.path, os.lstat)
        return "removed lock file created again"

    def close(self) -> None:
        """Release the lock if `restore` has taken it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
