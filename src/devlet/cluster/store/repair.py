"""Check the database of a cluster that is not running, and repair it: `devlet store check|repair`.

A repair writes a new database with every object that can be read, keeps the damaged files under other names, and
continues with versions above every version that was ever assigned. Clients that watch from an earlier version have to
list again.
"""

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from devlet.cluster.store import database_files, high_water_mark, log_file, salvage
from devlet.cluster.store.high_water_mark import Mark, first_version
from devlet.cluster.store.log_file import LogFile, check_header, translated
from devlet.cluster.store.salvage import Salvage
from devlet.cluster.store.wal_tail import Tail
from devlet.errors import StateCorrupt

__all__ = ["Checked", "Repaired", "check", "repair"]


@dataclass(frozen=True, slots=True)
class Checked:
    """A database without damage."""

    objects: int
    version: int
    tail: Tail
    marked: bool  # False: it has no valid mark, so a loss at the end of its log might go unnoticed


@dataclass(frozen=True, slots=True)
class Repaired:
    """A repaired database. `lost` describes what could not be kept; `copies` are the damaged files."""

    objects: int
    version: int
    lost: tuple[str, ...]
    copies: tuple[Path, ...]


def check(path: Path) -> Checked:
    """Read everything, as at a start. Raise StateCorrupt if something is damaged or lost."""
    with translated(path):
        database_files.finish_repair(path)
    with closing(LogFile(path)) as file:
        contents = file.contents()
        alive: dict[tuple[str, str, str], bool] = {}
        for row in file.rows():
            salvage.check_body(path, row)
            alive[row.kind, row.namespace, row.name] = not row.deleted
        return Checked(sum(alive.values()), contents.last, file.tail(), file.mark is not None)


def repair(path: Path, now: datetime) -> Repaired:
    """Replace a damaged database with a valid one. Raise StateCorrupt if it is not a devlet database, or nothing in it
    can be read."""
    with translated(path):
        database_files.finish_repair(path)
        mark = high_water_mark.read(database_files.mark(path))
    check_header(path)
    found = salvage.best(path)
    if not found.newest and found.lost:
        raise StateCorrupt(f"{path}: nothing in it can be read. Move {path} away to start with an empty cluster.")
    version = max(found.version, first_version(mark, now))
    with translated(path):
        copies = database_files.keep_copies(path, now)
        log_file.create(database_files.repaired(path), version, found.objects)
        database_files.finish_repair(path)
    return Repaired(len(found.objects), version, _lost(found, mark), tuple(copies))


def _lost(found: Salvage, mark: Mark | None) -> tuple[str, ...]:
    if not found.problem:
        return ()
    lost = list(found.lost)
    if mark and found.version < mark.version:
        first = f"versions {found.version + 1}" if found.version else "all versions up"
        lost.append(f"{first} to {mark.version}")
    return tuple(lost or [found.problem])
