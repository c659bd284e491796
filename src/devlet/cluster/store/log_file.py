"""The file under the embedded cluster: a log of object versions in SQLite.

Each write appends one row, so the newest row of a key is the object, the older ones are its history, and a
deletion is a row like any other. Nothing is ever changed in place; `compact` removes what nobody can ask for
any more. All functions block: the store calls them from threads.

A file that is damaged or not ours is never written to: it is checked through a read-only connection first.
"""

import os
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from devlet.errors import StateCorrupt, Unavailable

APPLICATION_ID = 0x64766C74  # "dvlt"
_COLUMNS = "version, at, kind, namespace, name, deleted, previous, body, checksum"
_MAGIC = b"SQLite format 3\x00"


class Row(NamedTuple):
    """One version of one object. `previous` is the version it replaces, 0 for none."""

    version: int
    at: int  # seconds since the epoch
    kind: str
    namespace: str
    name: str
    deleted: bool
    previous: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Contents:
    """Where the file starts: no version up to `compacted` can be asked for, none above `last` was given out."""

    compacted: int
    last: int


def _create_log(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE log (version INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL,"
        " namespace TEXT NOT NULL, name TEXT NOT NULL, deleted INTEGER NOT NULL, previous INTEGER NOT NULL,"
        " body BLOB NOT NULL, checksum INTEGER NOT NULL)"
    )
    db.execute("CREATE TABLE mark (name TEXT PRIMARY KEY, version INTEGER NOT NULL, checksum INTEGER NOT NULL)")


# One entry per format: entry n turns format n into n + 1. Append only.
MIGRATIONS: Sequence[Callable[[sqlite3.Connection], None]] = (_create_log,)


def create(path: Path, first_version: int) -> None:
    """Make an empty log whose versions start above `first_version`. Appears whole or not at all."""
    new = path.with_name(path.name + ".new")
    with _translated(path):
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(new, isolation_level=None)) as db:
            db.execute("PRAGMA page_size = 8192")
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            _migrate(db)
            db.executemany("INSERT INTO mark VALUES (?, ?, ?)", _marks(first_version, first_version))
        _put_in_place(new, path)


def _put_in_place(new: Path, path: Path) -> None:
    with open(new, "rb") as file:
        os.fsync(file.fileno())
    os.replace(new, path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _migrate(db: sqlite3.Connection) -> None:
    """Bring the file to our format, in one transaction: after a crash it is the old one or the new one."""
    (have,) = db.execute("PRAGMA user_version").fetchone()
    if have == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    for step in MIGRATIONS[have:]:
        step(db)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    db.execute("COMMIT")


def check_header(path: Path) -> None:
    """Refuse what is not a devlet database, or one of a newer format, by its first bytes."""
    with _translated(path), open(path, "rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise StateCorrupt(f"{path} is not a database. Move it away to start with an empty cluster.")
    user_version, application_id = struct.unpack_from(">I4xI", header, 60)
    if application_id != APPLICATION_ID:
        raise StateCorrupt(f"{path} is a database of another program. Choose another root, or move the file away.")
    if user_version > len(MIGRATIONS):
        raise StateCorrupt(
            f"{path} has format {user_version}; this devlet knows formats up to {len(MIGRATIONS)}."
            " Use the newer devlet that wrote it."
        )


class LogFile:
    """An open log. One thread may append or compact while others read."""

    def __init__(self, path: Path) -> None:
        check_header(path)
        self.path = path
        with _translated(path):
            self._reader = _connect(path, "ro")
        self._writer: sqlite3.Connection | None = None
        self._frozen = False

    def rows(self) -> Iterator[Row]:
        """All rows by version. Raises StateCorrupt at the first damaged one."""
        with _translated(self.path):
            for columns in self._reader.execute(f"SELECT {_COLUMNS} FROM log ORDER BY version"):
                yield self._row(columns)

    def contents(self) -> Contents:
        with _translated(self.path):
            # Rows have checksums; that none is missing, only the structure of the pages can tell.
            (verdict,) = self._reader.execute("PRAGMA quick_check(1)").fetchone()
            marks = self._reader.execute("SELECT name, version, checksum FROM mark").fetchall()
            newest = self._reader.execute("SELECT max(version) FROM log").fetchone()[0]
        if verdict != "ok":
            raise StateCorrupt(f"{self.path} is damaged: {verdict}")
        versions = {name: version for name, version, _ in marks}
        if sorted(marks) != _marks(versions.get("compacted", 0), versions.get("last", 0)):
            raise StateCorrupt(f"{self.path} is damaged: its marks are missing or do not match their checksums.")
        return Contents(versions["compacted"], max(versions["last"], newest or 0))

    def start_writing(self) -> None:
        """From here on the file may change. Call it after the contents were read without an error."""
        with _translated(self.path):
            writer = _connect(self.path, "rw")
            _migrate(writer)
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("PRAGMA synchronous = FULL")
            writer.execute("PRAGMA wal_autocheckpoint = 4000")
            self._writer = writer

    def append(self, rows: Sequence[Row]) -> None:
        """Durable when this returns; none of them if it raises."""
        with self._transaction() as db:
            db.executemany(
                "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(*row, _checksum(row)) for row in rows],
            )

    def compact(self, to: int, last: int, superseded: Iterable[int]) -> None:
        """Forget the given versions, and with them what was before `to`."""
        with self._transaction() as db:
            db.executemany("DELETE FROM log WHERE version = ?", [(version,) for version in superseded])
            db.executemany("REPLACE INTO mark VALUES (?, ?, ?)", _marks(to, last))

    def read(self, versions: Sequence[int]) -> dict[int, Row]:
        """The rows of these versions, as far as they have not been compacted away."""
        found: dict[int, Row] = {}
        with _translated(self.path), closing(_connect(self.path, "ro")) as db:
            for version in versions:
                columns = db.execute(f"SELECT {_COLUMNS} FROM log WHERE version = ?", (version,)).fetchone()
                if columns is not None:
                    found[version] = self._row(columns)
        return found

    def _row(self, columns: tuple[Any, ...]) -> Row:
        version, at, kind, namespace, name, deleted, previous, body, checksum = columns
        row = Row(version, at, kind, namespace, name, bool(deleted), previous, body)
        if not isinstance(body, bytes) or _checksum(row) != checksum:
            raise StateCorrupt(f"{self.path} is damaged: version {version} does not match its checksum.")
        return row

    def close(self) -> None:
        self._reader.close()
        if self._writer is not None:
            self._writer.close()

    def freeze(self) -> None:
        """Refuse every write that has not begun yet, for good: what a process would leave that is killed now."""
        self._frozen = True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        assert self._writer is not None, "start_writing() comes first"
        if self._frozen:
            raise Unavailable(f"{self.path} takes no more writes")
        with _translated(self.path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise


def _checksum(row: Row) -> int:
    """Over all columns: an object under another name is damage too."""
    *columns, body = row
    return crc32(body, crc32(repr(columns).encode(errors="backslashreplace")))


def _marks(compacted: int, last: int) -> list[tuple[str, int, int]]:
    versions = {"compacted": compacted, "last": last}
    return [(name, version, crc32(f"{name} {version}".encode())) for name, version in versions.items()]


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=10
    )
    db.execute("PRAGMA cache_size = -8000")
    return db


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise Unavailable(f"{path}: {e}") from e
    except sqlite3.DatabaseError as e:
        # The disk or another process is in the way; SQLITE_ERROR is about a schema that is not ours.
        if isinstance(e, sqlite3.OperationalError) and e.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise Unavailable(f"{path}: {e}") from e
        raise StateCorrupt(
            f"{path} is damaged: {e}. Restore it, or move it away to start with an empty cluster."
        ) from e
