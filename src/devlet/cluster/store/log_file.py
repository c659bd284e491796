"""The file of the embedded cluster: a log of object versions in SQLite.

Each write appends one row. The newest row of a key is the object, older rows are its history, and a deletion is a row
as well. Rows are never changed; `compact` removes those that no client can ask for any more. All functions block: the
store calls them in threads.

A file that is damaged, or not a devlet database, is never written to: it is checked through a read-only connection
first. The check includes the high-water mark beside the file: every acknowledged write must still be there.
"""

import logging
import os
import shlex
import sqlite3
import struct
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from devlet.cluster.store import database_files, high_water_mark, wal_tail
from devlet.cluster.store.high_water_mark import Mark, MarkFile
from devlet.cluster.store.wal_tail import Tail
from devlet.errors import StateCorrupt, Unavailable
from devlet.kit import atomic_file
from devlet.kit.facts import facts
from devlet.kit.upkeep import identity

log = logging.getLogger(__name__)

APPLICATION_ID = 0x64766C74  # "dvlt"
_INSERT = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
COLUMNS = "version, at, kind, namespace, name, deleted, previous, body, checksum"
_MAGIC = b"SQLite format 3\x00"
_PAGE_BYTES = 8192


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
    """The range of versions: none up to `compacted` can be read, and none above `last` was assigned."""

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


def create(path: Path, first_version: int, rows: Iterable[Row] = ()) -> None:
    """Create a log of these rows, whose versions continue above `first_version`. It appears completely or not at
    all."""
    new = path.with_name(path.name + ".new")
    with translated(path):
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(new, isolation_level=None)) as db:
            db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            _migrate(db)
            db.execute("BEGIN")
            db.executemany(_INSERT, _values(rows))
            db.executemany("INSERT INTO mark VALUES (?, ?, ?)", _marks(first_version, first_version))
            db.execute("COMMIT")
        with open(new, "rb") as file:
            os.fsync(file.fileno())
        os.replace(new, path)
        atomic_file.sync_directory(path.parent)


def _migrate(db: sqlite3.Connection) -> None:
    """Migrate the file to the newest format in one transaction: after a crash it has the old format or the new one."""
    (have,) = db.execute("PRAGMA user_version").fetchone()
    if have == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    for step in MIGRATIONS[have:]:
        step(db)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    db.execute("COMMIT")


def check_header(path: Path) -> None:
    """Refuse a file that is not a devlet database, or has a newer format, by its first bytes."""
    with translated(path), open(path, "rb") as file:
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

    def __init__(self, path: Path, *, main_only: bool = False) -> None:
        """`main_only` reads the file as if it had no write-ahead log; it cannot be written then."""
        check_header(path)
        self.path = path
        self._main_only = main_only
        with translated(path):
            self.mark = high_water_mark.read(database_files.mark(path))
            self._reader = connect(path, "ro&immutable=1" if main_only else "ro")
        self._writer: sqlite3.Connection | None = None
        self._mark_file: MarkFile | None = None
        self._in_place: dict[Path, tuple[int, int] | None] = {}  # the open files, by their paths
        self._holds: Mark | None = None  # what a mark has to say about the rows
        self._mark_behind = False
        self._frozen = False

    def rows(self) -> Iterator[Row]:
        """Return all rows by version. Raise StateCorrupt at the first damaged row, or at the end if rows are missing
        that the mark counts."""
        contents = self._contents()
        until = self.mark.version if self.mark else 0
        older: list[int] = []  # checksums of the rows that the mark counts
        newer: list[int] = []
        with translated(self.path):
            for columns in self._reader.execute(f"SELECT {COLUMNS} FROM log ORDER BY version"):
                (older if columns[0] <= until else newer).append(columns[-1])
                yield to_row(self.path, columns)
        marked = Mark(0, contents.compacted).added(until, older)
        if problem := _contradiction(self.mark, marked):
            raise damaged(self.path, problem)
        self._holds = marked.added(contents.last, newer)

    def contents(self) -> Contents:
        """Return the range of versions. Raise StateCorrupt if the structure is damaged or acknowledged versions are
        missing."""
        with translated(self.path):
            # Rows have checksums; that none is missing, only the structure of the pages can tell.
            (verdict,) = self._reader.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(self.path, verdict)
        contents = self._contents()
        if problem := _loss(contents, self.mark, self.tail()):
            raise damaged(self.path, problem)
        return contents

    def _contents(self) -> Contents:
        with translated(self.path):
            marks = self._reader.execute("SELECT name, version, checksum FROM mark").fetchall()
            newest = self._reader.execute("SELECT max(version) FROM log").fetchone()[0]
        versions = {name: version for name, version, _ in marks}
        if sorted(marks) != _marks(versions.get("compacted", 0), versions.get("last", 0)):
            raise damaged(self.path, "its marks are missing or do not match their checksums")
        return Contents(versions["compacted"], max(versions["last"], newest or 0))

    def tail(self) -> Tail:
        """Return what the write-ahead log has after the last valid commit."""
        if self._main_only:
            return Tail()
        with translated(self.path):
            return wal_tail.inspect(self.path.resolve(), _PAGE_BYTES)

    def start_writing(self) -> None:
        """Allow changes of the file. Call it after the contents were read without an error."""
        if self._holds is None:
            deque(self.rows(), maxlen=0)
        assert self._holds is not None
        with translated(self.path):
            writer = connect(self.path, "rw")
            self._writer = writer
            _migrate(writer)
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("PRAGMA synchronous = FULL")
            writer.execute("PRAGMA wal_autocheckpoint = 4000")
            self._mark_file = MarkFile(database_files.mark(self.path))
            writer.execute("SELECT count(*) FROM mark").fetchone()  # opens SQLite's own files
        files = (self.path, database_files.log(self.path), database_files.index(self.path))
        self._in_place = {path: identity(path) for path in files}
        self._advance(self._holds)

    def append(self, rows: Sequence[Row]) -> None:
        """Append rows. They are durable when this returns; if it raises, none of them is."""
        values = _values(rows)
        with self._transaction() as db:
            db.executemany(_INSERT, values)
        assert self._holds is not None
        self._advance(self._holds.added(rows[-1].version, [value[-1] for value in values]))

    def compact(self, to: int, last: int, superseded: Iterable[int]) -> None:
        """Remove the given versions, and the history before `to`."""
        checksums: list[int] = []
        with self._transaction() as db:
            for version in superseded:
                checksums += db.execute("SELECT checksum FROM log WHERE version = ?", (version,)).fetchone() or ()
                db.execute("DELETE FROM log WHERE version = ?", (version,))
            db.executemany("REPLACE INTO mark VALUES (?, ?, ?)", _marks(to, last))
        assert self._holds is not None
        self._advance(self._holds.removed(to, checksums))

    def probe(self, size: int = 0) -> None:
        """Commit a change without an effect if the disk has room for `size` bytes. Otherwise raise Unavailable."""
        with translated(self.path), tempfile.TemporaryFile(dir=self.path.resolve().parent) as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
        with self._transaction() as db:
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    @property
    def in_place(self) -> Collection[Path]:
        """The files without which no write succeeds."""
        return self._in_place.keys()

    def check_in_place(self) -> None:
        """Raise Unavailable if a file was removed: the next start would lose what is written to it from now on."""
        for path, known in self._in_place.items():
            if identity(path) != known:
                raise Unavailable(_removed(path, is_database=path == self.path))

    def _advance(self, mark: Mark) -> None:
        """Record in the mark what is durable now. If that fails, the mark stays behind, which is allowed."""
        assert self._mark_file is not None
        self.mark = self._holds = mark
        try:
            if not self._mark_file.is_in_place():
                self._mark_file.close()
                self._mark_file = MarkFile(database_files.mark(self.path))
                log.warning("removed file written again", extra=facts(path=database_files.mark(self.path)))
            self._mark_file.write(mark)
            self._mark_behind = False
        except OSError as e:
            if not self._mark_behind:  # once is enough: commits may be many
                log.warning("high-water mark not written", extra=facts(path=database_files.mark(self.path), err=e))
            self._mark_behind = True

    def read(self, versions: Sequence[int]) -> dict[int, Row]:
        """Return the rows of these versions, without those that were compacted away."""
        found: dict[int, Row] = {}
        with translated(self.path), closing(connect(self.path, "ro")) as db:
            for version in versions:
                columns = db.execute(f"SELECT {COLUMNS} FROM log WHERE version = ?", (version,)).fetchone()
                if columns is not None:
                    found[version] = to_row(self.path, columns)
        return found

    def close(self) -> None:
        self._reader.close()
        if self._writer is not None:
            self._writer.close()
        if self._mark_file is not None:
            with suppress(OSError):
                self._mark_file.sync()
            self._mark_file.close()

    def freeze(self) -> None:
        """Refuse every write that has not begun yet, for good. The file is then what a killed process would leave."""
        self._frozen = True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        assert self._writer is not None, "start_writing() comes first"
        if self._frozen:
            raise Unavailable(f"{self.path} takes no more writes")
        self.check_in_place()
        with translated(self.path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise


def to_row(path: Path, columns: tuple[Any, ...]) -> Row:
    """Raises StateCorrupt if the columns do not match their checksum."""
    version, at, kind, namespace, name, deleted, previous, body, checksum = columns
    row = Row(version, at, kind, namespace, name, bool(deleted), previous, body)
    if not isinstance(body, bytes) or _checksum(row) != checksum:
        raise damaged(path, f"version {version} does not match its checksum")
    return row


def _values(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return [(*row, _checksum(row)) for row in rows]


def _checksum(row: Row) -> int:
    """Return the checksum over all columns: an object under another name is damage as well."""
    *columns, body = row
    return crc32(body, crc32(repr(columns).encode(errors="backslashreplace")))


def _marks(compacted: int, last: int) -> list[tuple[str, int, int]]:
    versions = {"compacted": compacted, "last": last}
    return [(name, version, crc32(f"{name} {version}".encode())) for name, version in versions.items()]


def _loss(contents: Contents, mark: Mark | None, tail: Tail) -> str:
    """Return what is missing at the end of the log, or an empty string."""
    if mark and contents.last < mark.version:
        return (
            f"it ends at version {contents.last}, but versions up to {mark.version} were acknowledged:"
            f" {contents.last + 1} to {mark.version} are lost"
        )
    if tail.lost:
        return f"its write-ahead log is broken after version {contents.last}; acknowledged versions above that are lost"
    return ""


def _contradiction(mark: Mark | None, found: Mark) -> str:
    """Return what does not match the mark in the rows up to its version, or an empty string. After a newer compaction
    nothing can be concluded from the mark."""
    if mark is None or found.compacted > mark.compacted:
        return ""
    if found.compacted < mark.compacted:
        return f"it was compacted up to version {mark.compacted}, and that is undone"
    if (found.rows, found.total) == (mark.rows, mark.total):
        return ""
    return f"its {found.rows} rows up to version {mark.version} are not the {mark.rows} that were acknowledged"


def _removed(path: Path, *, is_database: bool) -> str:
    """Return what happened to an open file, and what to do."""
    what = f"{path} was removed or replaced while devlet runs, so nothing can be written."
    if is_database:
        return (
            f"{what} What it held is lost at the next start: move it back, or save what you need with"
            " `devlet get -o yaml` and restart devlet."
        )
    return f"{what} Restart devlet. A stop by SIGTERM saves everything in the database itself; `kill -9` loses it."


def damaged(path: Path, problem: str) -> StateCorrupt:
    """Return the error for a damaged database, with advice that can be followed as printed."""
    root = shlex.quote(str(path.parent))
    return StateCorrupt(
        f"{path} is damaged: {problem}. Run `devlet store repair --root {root}` to keep what can be read,"
        f" or move {path} away to start with an empty cluster.",
        problem=problem,
    )


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Connect to a database. `mode` is `ro` or `rw`, and may be followed by more parameters of a URI."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=10
    )
    db.execute("PRAGMA cache_size = -8000")
    return db


@contextmanager
def translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise Unavailable(f"{path}: {e}") from e
    except sqlite3.DatabaseError as e:
        # The disk or another process is in the way; SQLITE_ERROR is about a schema that is not ours.
        if isinstance(e, sqlite3.OperationalError) and e.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise Unavailable(f"{path}: {e}") from e
        raise damaged(path, str(e)) from e
