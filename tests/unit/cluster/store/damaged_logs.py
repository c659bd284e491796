"""Logs as a process leaves them that is killed, and damage to them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from devlet.cluster.store import log_file
from devlet.cluster.store.log_file import LogFile, Row

FIRST = 100
FRAME = 24 + 8192


def row(version: int, name: str = "", *, deleted: bool = False, size: int = 3000) -> Row:
    body = b'{"metadata":{"name":"x"},"data":"' + b"v" * size + b'"}'
    return Row(version, 1_700_000_000, "configmaps", "default", name or f"object-{version}", deleted, 0, body)


def crashed(path: Path, commits: int = 30, *, checkpointed: bool = False) -> list[Row]:
    """Make a log with one row per commit, an open write-ahead log and a mark. `checkpointed`: all of it has been copied
    into the database, and the log has not begun again."""
    live = path.with_name("live.db")
    rows = [row(FIRST + 1 + i) for i in range(commits)]
    log_file.create(live, FIRST)
    with closing(LogFile(live)) as file:
        file.start_writing()
        for each in rows:
            file.append([each])
        if checkpointed:
            with closing(sqlite3.connect(live)) as db:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        for suffix in ("", "-wal", "-mark"):
            shutil.copy(f"{live}{suffix}", f"{path}{suffix}")
    for left in live.parent.glob("live.db*"):
        left.unlink()
    return rows


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def flip_log(path: Path, share: float) -> None:
    """Flip a bit in the page of the frame that is so far into the write-ahead log."""
    log = path.with_name(f"{path.name}-wal")
    frames = (log.stat().st_size - 32) // FRAME
    flip(log, 32 + int(frames * share) * FRAME + 24 + 100)
