"""The high-water mark: the newest durable version and a checksum over all rows, in a small file beside the database.

SQLite ends its write-ahead log at the first frame with a wrong checksum, without an error: a flipped bit looks like a
commit that was never finished. The mark distinguishes the two. It is written after each commit and before the commit is
acknowledged, without a sync of its own. So it can be behind the database, but never ahead of it.

The file has two slots that are written alternately: an interrupted write damages only the older one.
"""

import os
import struct
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zlib import crc32

from devlet.kit import atomic_file
from devlet.kit.upkeep import identity

__all__ = ["Mark", "MarkFile", "first_version", "read"]

_MAGIC = b"dvltmark"
_SLOT = struct.Struct("<8sQQQQQ")  # magic, sequence, version, compacted, rows, total
_CHECKSUM = struct.Struct("<I")
_SLOT_BYTES = 4096  # a sector of any disk: writing one slot cannot damage the other
_SLOTS = 2
_TOTAL_LIMIT = 1 << 64


@dataclass(frozen=True, slots=True)
class Mark:
    """The state of the log after a commit: its newest version, the version up to which it was compacted, the number of
    its rows and the sum of their checksums."""

    version: int
    compacted: int
    rows: int = 0
    total: int = 0

    def added(self, version: int, checksums: list[int]) -> "Mark":
        total = (self.total + sum(checksums)) % _TOTAL_LIMIT
        return Mark(max(self.version, version), self.compacted, self.rows + len(checksums), total)

    def removed(self, compacted: int, checksums: list[int]) -> "Mark":
        total = (self.total - sum(checksums)) % _TOTAL_LIMIT
        return Mark(self.version, compacted, self.rows - len(checksums), total)


def read(path: Path) -> Mark | None:
    """Return the newest mark in the file, or None if there is no file or nothing in it is valid. Raises OSError."""
    return _newest(path)[1]


def first_version(mark: Mark | None, now: datetime) -> int:
    """Return the first version of a new database: the time in microseconds, and above the mark. Clients that remember a
    version of the previous cluster must not take new versions for older ones."""
    return max(int(now.timestamp() * 1_000_000), mark.version if mark else 0)


class MarkFile:
    """The file, open for writing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with ExitStack() as on_error:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            on_error.callback(os.close, self._fd)
            self._sequence = _newest(path)[0]
            if os.fstat(self._fd).st_size < _SLOTS * _SLOT_BYTES:
                os.ftruncate(self._fd, _SLOTS * _SLOT_BYTES)
                atomic_file.sync_directory(path.parent)
            on_error.pop_all()

    def write(self, mark: Mark) -> None:
        """Write the mark into the older slot. Raises OSError; the newer slot is whole then."""
        sequence = self._sequence + 1
        body = _SLOT.pack(_MAGIC, sequence, mark.version, mark.compacted, mark.rows, mark.total)
        os.pwrite(self._fd, body + _CHECKSUM.pack(crc32(body)), sequence % _SLOTS * _SLOT_BYTES)
        self._sequence = sequence

    def is_in_place(self) -> bool:
        """Return True if the file still has its name."""
        own = os.fstat(self._fd)
        return identity(self._path) == (own.st_dev, own.st_ino)

    def sync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def _newest(path: Path) -> tuple[int, Mark | None]:
    """Return the newest mark with its sequence number, or 0 if there is none."""
    try:
        with open(path, "rb") as file:
            content = file.read(_SLOTS * _SLOT_BYTES)
    except FileNotFoundError:
        return 0, None
    found = [_decode(content[at : at + _SLOT_BYTES]) for at in range(0, len(content), _SLOT_BYTES)]
    return max(found, key=lambda slot: slot[0], default=(0, None))


def _decode(slot: bytes) -> tuple[int, Mark | None]:
    body, checksum = slot[: _SLOT.size], slot[_SLOT.size : _SLOT.size + _CHECKSUM.size]
    if checksum != _CHECKSUM.pack(crc32(body)) or not body.startswith(_MAGIC):
        return 0, None
    _, sequence, *fields = _SLOT.unpack(body)
    return sequence, Mark(*fields)
