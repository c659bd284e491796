"""The sockets below a directory. Each has a generation, and a socket that is created again gets a new one.

The generation stays the same if a socket is reported again, or if its owner or mode changes. An inode number does not
identify a socket, because the file system may reuse it at once; that the name was removed in between does. Files and
directories whose names begin with a dot are ignored.
"""

import logging
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devlet.kit.dir_watch import Change, DirWatch, Found, Gone, Rescanned, Settings
from devlet.kit.facts import facts

__all__ = ["SocketDir", "Sockets"]

log = logging.getLogger(__name__)

MAX_SOCKETS = 1024


@dataclass(frozen=True, slots=True)
class _Socket:
    file: tuple[int, int]  # device and inode
    changed: int  # its ctime
    generation: int


class Sockets:
    """Follows the sockets of a directory through its changes. Does no I/O."""

    def __init__(self, limit: int = MAX_SOCKETS) -> None:
        self._limit = limit
        self._refused: dict[Path, Found] = {}  # at most `limit`; they are added when other sockets are removed
        self._numbers = count(1)
        self._known: dict[Path, _Socket] = {}

    @property
    def generations(self) -> dict[Path, int]:
        return {path: socket.generation for path, socket in self._known.items()}

    def apply(self, changes: Iterable[Change]) -> None:
        before: dict[Path, _Socket] = {}
        lost = False
        for change in changes:
            match change:
                case Rescanned():
                    before, self._known, self._refused = {**before, **self._known}, {}, {}
                    lost = lost or change.lost
                case Gone():
                    for paths in (self._known, before, self._refused):
                        _drop(paths, change)
                case Found():
                    self._found(change, self._known.get(change.path), before.pop(change.path, None), lost)
        while self._refused and len(self._known) < self._limit:
            path = next(iter(self._refused))
            self._found(self._refused.pop(path), None, None, False)

    def _found(self, found: Found, known: _Socket | None, before: _Socket | None, lost: bool) -> None:
        if not stat.S_ISSOCK(found.status.st_mode):
            self._known.pop(found.path, None)
            return
        if known is None and len(self._known) >= self._limit:
            self._refuse(found)
            return
        file, changed = (found.status.st_dev, found.status.st_ino), found.status.st_ctime_ns
        if known is not None and known.file == file:
            generation = known.generation
        elif before is not None and before.file == file and not (lost and before.changed != changed):
            generation = before.generation
        else:
            generation = next(self._numbers)
        self._known[found.path] = _Socket(file, changed, generation)

    def _refuse(self, found: Found) -> None:
        if not self._refused:
            log.warning("socket ignored because there are too many", extra=facts(socket=found.path, limit=self._limit))
        if len(self._refused) < self._limit:
            self._refused[found.path] = found


class SocketDir:
    """Watches a directory. To be used by one task, inside `with`."""

    def __init__(self, directory: Path, settings: Settings = Settings()) -> None:
        self._watch = DirWatch(directory, skip=lambda name: name.startswith("."), settings=settings)
        self._sockets = Sockets()
        self._last: dict[Path, int] | None = None

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    async def changed(self) -> dict[Path, int]:
        """Return the sockets with their generations as soon as they differ from the last answer. The first call returns
        at once."""
        while True:
            self._sockets.apply(await self._watch.changes())
            if (generations := self._sockets.generations) != self._last:
                self._last = generations
                return dict(generations)


def _drop(sockets: dict[Path, Any], gone: Gone) -> None:
    sockets.pop(gone.path, None)
    if gone.directory:
        for path in [path for path in sockets if path.is_relative_to(gone.path)]:
            del sockets[path]
