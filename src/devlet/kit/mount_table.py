"""The mounts that a process sees: which file a path means there, and by which path another process finds the same file.

`/proc/PID/mountinfo` names, for each mount, the file system and the directory of it that is mounted. So a path of one
process becomes a place in a file system, and the place a path of another process, whether or not the file exists.
Symbolic links are not followed by mounts: resolve them first, with `resolved`.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

__all__ = ["Mount", "MountTable", "Place", "read", "resolved"]

_MAX_BYTES = 16 << 20  # of a table
_MAX_LINKS = 40  # in one path, as in the kernel
_ESCAPE = re.compile(r"\\([0-7]{3})")


class Place(NamedTuple):
    """A path inside a file system, which is known by its device number."""

    device: str
    path: Path


class Mount(NamedTuple):
    """The directory `source` of a file system, shown at `point`."""

    id: str
    parent: str
    source: Place
    point: Path


class MountTable:
    def __init__(self, mounts: tuple[Mount, ...]) -> None:
        self._mounts = mounts

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a mountinfo file. Lines that make no sense are left out."""
        return cls(tuple(mount for line in text.splitlines() if (mount := _mount(line))))

    def place(self, path: Path) -> Place | None:
        """Return what the path means here, or None if the table does not contain its root directory."""
        ids = {mount.id for mount in self._mounts}
        top = (each for each in self._mounts if each.point == Path("/") and each.parent not in ids - {each.id})
        at = next(top, None)
        while at and (next_one := self._entered(at, path)):
            at = next_one
        return at and Place(at.source.device, at.source.path / path.relative_to(at.point))

    def paths(self, place: Place) -> Iterator[Path]:
        """Generate the paths that mean this place here."""
        for mount in self._mounts:
            if mount.source.device == place.device and place.path.is_relative_to(mount.source.path):
                path = mount.point / place.path.relative_to(mount.source.path)
                if self.place(path) == place:  # nothing is mounted over it
                    yield path

    def _entered(self, at: Mount, path: Path) -> Mount | None:
        """Return the first mount on the way down. One on the same directory covers the one before."""
        on_the_way = [m for m in self._mounts if m.parent == at.id and m.id != at.id and path.is_relative_to(m.point)]
        return min(on_the_way, key=lambda mount: len(mount.point.parts), default=None)


def read(pid: int | str = "self") -> MountTable | None:
    """Return the mounts that a process sees, or None if they cannot be known."""
    try:
        with open(f"/proc/{pid}/mountinfo", "rb") as file:
            return MountTable.parse(os.fsdecode(file.read(_MAX_BYTES)))
    except OSError:
        return None


def resolved(path: Path, pid: int | None = None) -> Path:
    """Follow the symbolic links in an absolute path, as process `pid` would; what does not exist is kept as it is."""
    root = "" if pid is None else f"/proc/{pid}/root"
    done, waiting, links = Path("/"), [*reversed(path.parts[1:])], 0
    while waiting:
        if (part := waiting.pop()) == "..":
            done = done.parent
            continue
        try:
            target = Path(os.readlink(f"{root}{done / part}"))
        except (OSError, ValueError):  # not a link, does not exist, or is out of our reach
            done /= part
            continue
        if (links := links + 1) > _MAX_LINKS:
            return path
        done = Path("/") if target.is_absolute() else done
        waiting.extend(reversed([each for each in target.parts if each != "/"]))
    return done


def _mount(line: str) -> Mount | None:
    fields = line.split(" ")
    if len(fields) < 6:
        return None
    id, parent, device, source, point = fields[:5]
    return Mount(id, parent, Place(device, Path(_unescaped(source))), Path(_unescaped(point)))


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)
