"""The files beside a database: SQLite's write-ahead log and its index, the high-water mark, and the files of a repair.

SQLite applies a log to whatever database has its name. So a log must be removed before another database replaces the
one that the log belongs to. The two steps are not atomic, so the next start finishes a repair that was interrupted
between them.
"""

import os
import shutil
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from devlet.kit import atomic_file

__all__ = ["finish_repair", "index", "keep_copies", "log", "mark", "remove_log", "repaired"]

_STAMP = "%Y%m%dT%H%M%SZ"


def mark(database: Path) -> Path:
    return _beside(database, "-mark")


def log(database: Path) -> Path:
    return _beside(database, "-wal")


def index(database: Path) -> Path:
    """Return the path of SQLite's index of the log."""
    return _beside(database, "-shm")


def repaired(database: Path) -> Path:
    """Return the path at which a repair puts the new database once it is complete."""
    return _beside(database, ".repaired")


def _beside(database: Path, suffix: str) -> Path:
    """Return a path beside the database itself, not beside a symbolic link to it, as SQLite does."""
    real = database.resolve()
    return real.with_name(real.name + suffix)


def finish_repair(database: Path) -> None:
    """Put a repaired database in place, if one is complete."""
    new = repaired(database)
    if not new.exists():
        return
    remove_log(database)
    os.replace(new, database.resolve())
    atomic_file.sync_directory(new.parent)


def remove_log(database: Path) -> None:
    """Remove SQLite's files, durably, so that another database can take the name."""
    log(database).unlink(missing_ok=True)
    index(database).unlink(missing_ok=True)
    atomic_file.sync_directory(log(database).parent)


def keep_copies(database: Path, now: datetime) -> list[Path]:
    """Rename the database, its log and its mark, as far as they exist, to `NAME.damaged-TIME`, and the same with `-wal`
    and `-mark`, so that SQLite can open the copies."""
    stem = _free_name(database, now)
    kept = []
    for path, suffix in ((database.resolve(), ""), (log(database), "-wal"), (mark(database), "-mark")):
        if path.exists():
            kept.append(stem.with_name(stem.name + suffix))
            # The mark stays, because it is written in place; the others are replaced or removed.
            (shutil.copy2 if suffix == "-mark" else os.link)(path, kept[-1])
    atomic_file.sync_directory(stem.parent)
    return kept


def _free_name(database: Path, now: datetime) -> Path:
    name = f".damaged-{now.astimezone(UTC).strftime(_STAMP)}"
    stems = (_beside(database, f"{name}-{number}" if number else name) for number in count())
    return next(
        stem for stem in stems if not any(stem.with_name(stem.name + s).exists() for s in ("", "-wal", "-mark"))
    )
