"""Read what is left in a damaged log: every object in the newest version whose row is undamaged.

Pages that SQLite cannot read are skipped. From the last row before the damage, the search continues in growing steps
until a row can be read again, and from there back to the damage.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from devlet.cluster.store.log_file import COLUMNS, LogFile, Row, connect, damaged, to_row, translated
from devlet.cluster.store.records import Record
from devlet.errors import StateCorrupt, Unavailable

__all__ = ["Salvage", "best", "check_body"]

_LAST_VERSION = (1 << 63) - 1
_NOT_DAMAGE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM}
_Columns = tuple[Any, ...]


@dataclass
class Salvage:
    """The newest rows by kind, namespace and name, including deletions, and a description of what was lost."""

    problem: str  # empty: nothing is missing, as far as checksums, structure and the mark can tell
    newest: dict[tuple[str, str, str], Row] = field(default_factory=dict)
    version: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def objects(self) -> list[Row]:
        return sorted(row for row in self.newest.values() if not row.deleted)

    def add(self, row: Row) -> None:
        key = (row.kind, row.namespace, row.name)
        if key not in self.newest or self.newest[key].version < row.version:
            self.newest[key] = row
        self.version = max(self.version, row.version)


def best(path: Path) -> Salvage:
    """Read the database with its write-ahead log and without it, and return the newer result.

    Reading without it is necessary if the log was copied into the database completely and damaged afterwards: SQLite
    would then see old pages among new ones."""
    found = [_read(path, main_only=False), _read(path, main_only=True)]
    return max(found, key=lambda salvage: (salvage.version, not salvage.problem))


def _read(path: Path, *, main_only: bool) -> Salvage:
    found = Salvage(_problem(path, main_only))
    with translated(path):
        try:
            db = connect(path, "ro&immutable=1" if main_only else "ro")
        except sqlite3.DatabaseError as e:
            _pass_on(e)
            found.lost.append("everything")
            return found
        with closing(db):
            for columns in _readable(db, found.lost):
                _take(path, columns, found)
    return found


def _take(path: Path, columns: _Columns, found: Salvage) -> None:
    try:
        row = to_row(path, columns)
        check_body(path, row)
        found.add(row)
    except StateCorrupt:
        found.lost.append(f"version {columns[0]}")


def _pass_on(error: sqlite3.DatabaseError) -> None:
    """Raise the error again if it is not about the file."""
    if error.sqlite_errorcode & 0xFF in _NOT_DAMAGE:
        raise error


def _problem(path: Path, main_only: bool) -> str:
    try:
        with closing(LogFile(path, main_only=main_only)) as file:
            file.contents()
            for row in file.rows():
                check_body(path, row)
    except StateCorrupt as e:
        return e.problem
    except Unavailable as e:
        return str(e)
    return ""


def check_body(path: Path, row: Row) -> None:
    """Raise StateCorrupt if the row does not hold an object."""
    try:
        _ = Record((row.namespace, row.name), row.version, row.body).head
    except msgspec.DecodeError as e:
        raise damaged(path, f"version {row.version}: {e}") from e


def _readable(db: sqlite3.Connection, lost: list[str]) -> Iterator[_Columns]:
    """Yield each row that SQLite can read. Add a line to `lost` for each part that it cannot read."""
    read, after, step = 0, 0, 1  # the last version read, and where the search continues
    while after < _LAST_VERSION:
        try:
            for columns in db.execute(f"SELECT {COLUMNS} FROM log WHERE version > ? ORDER BY version", (after,)):
                if after > read:
                    yield from _backwards(db, read, columns[0], lost)
                read = after = columns[0]
                step = 1
                yield columns
            break
        except sqlite3.DatabaseError as e:
            _pass_on(e)
            after, step = after + step, step * 2
    if after > read:
        lost.append(f"what was stored after version {read} and cannot be read")


def _backwards(db: sqlite3.Connection, above: int, below: int, lost: list[str]) -> Iterator[_Columns]:
    """Yield the rows between, the newest first, down to the damage."""
    reached = below
    try:
        query = f"SELECT {COLUMNS} FROM log WHERE version > ? AND version < ? ORDER BY version DESC"
        for columns in db.execute(query, (above, below)):
            reached = columns[0]
            yield columns
    except sqlite3.DatabaseError:
        lost.append(f"what was stored between versions {above} and {reached} and cannot be read")
