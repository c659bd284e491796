"""What follows the part of a write-ahead log that SQLite accepts: nothing, an unfinished write, or lost commits.

SQLite syncs a commit before it writes the next one. A frame that was written on top of a commit therefore proves that
the commit was durable, and if SQLite does not accept that commit any more, the log was damaged. The proof needs no
mark: it also holds for databases of devlet 0.1, and after a power loss that took the newest marks. It cannot cover the
last commit, because nothing follows that.

The format is described in https://www.sqlite.org/walformat.html. `-shm` is read for one number: how many frames SQLite
accepted when it recovered the log.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

__all__ = ["Tail", "inspect"]

_FORMAT = 3007000
_HEADER = struct.Struct(">8I")  # magic, format, page size, checkpoints, salts, checksums
_FRAME = struct.Struct(">6I")  # page, pages of the database after a commit or 0, salts, checksums
_INDEX = struct.Struct("=I12xI12x2I")  # format, frames, salts
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Tail:
    """`accepted` frames are valid; `ignored` ones of the same generation follow, without an effect on the database.
    `lost` says that a durable commit is among the ignored ones."""

    accepted: int = 0
    ignored: int = 0
    lost: bool = False


class _Frame(NamedTuple):
    at: int
    commit: bool
    salts: tuple[int, int]
    checksums: tuple[int, int]


def inspect(database: Path, page_bytes: int) -> Tail:
    """Look at the log of a database that a connection has open and has read from. Raises OSError."""
    accepted = _accepted(database)
    log = database.with_name(f"{database.name}-wal")
    if accepted is None or not log.exists():
        return Tail()
    with open(log, "rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return Tail()
        magic, *_, salt1, salt2, _, _ = _HEADER.unpack(header)
        frames = [f for f in _frames(file, accepted, page_bytes) if f.salts == (salt1, salt2)]
        order = ">" if magic & 1 else "<"
        return Tail(accepted, len(frames), any(_follows(file, a, b, page_bytes, order) for a, b in _commits(frames)))


def _accepted(database: Path) -> int | None:
    """Return the number of frames up to the last commit that SQLite accepts; None if it is not known."""
    try:
        index = database.with_name(f"{database.name}-shm").read_bytes()[: _INDEX.size]
    except FileNotFoundError:
        return None
    if len(index) < _INDEX.size:
        return None
    version, frames, _, _ = _INDEX.unpack(index)
    return frames if version == _FORMAT else None


def _frames(file: BinaryIO, first: int, page_bytes: int) -> Iterator[_Frame]:
    size = _FRAME.size + page_bytes
    end = os.fstat(file.fileno()).st_size
    for at in range(_HEADER.size + first * size, end - size + 1, size):
        _, pages, salt1, salt2, *checksums = _FRAME.unpack(os.pread(file.fileno(), _FRAME.size, at))
        yield _Frame(at, pages != 0, (salt1, salt2), (checksums[0], checksums[1]))


def _commits(frames: list[_Frame]) -> Iterator[tuple[_Frame, _Frame]]:
    """Return the commits among the frames, each with the next frame."""
    return ((a, b) for a, b in pairwise(frames) if a.commit)


def _follows(file: BinaryIO, before: _Frame, frame: _Frame, page_bytes: int, order: str) -> bool:
    """Return True if the frame was written after the previous one: checksums are cumulative."""
    size = _FRAME.size + page_bytes
    if frame.at != before.at + size:
        return False
    content = os.pread(file.fileno(), size, frame.at)
    return _checksums(content[:8] + content[_FRAME.size :], before.checksums, order) == frame.checksums


def _checksums(content: bytes, seed: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = seed
    for even, odd in struct.iter_unpack(f"{order}2I", content):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
