"""Directories for nodes: with short paths, because sockets are below them, and in memory if possible.

The user of a directory holds a lock in it. A directory whose lock is free was left by a killed process. The next user
removes it, because in memory it would stay until the machine restarts.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devlet.daemon.root import TEST_LOCK, longest_socket_path
from devlet.kit import socket_paths

__all__ = ["temporary_root"]

PREFIX = "dv"
SHORT = Path("/tmp")
MEMORY = Path("/dev/shm")
ROOM = 64 << 20  # bytes; a node needs less than one of them


@contextmanager
def temporary_root(memory: Path = MEMORY) -> Iterator[Path]:
    """Create a directory that is empty but for a lock, and remove it afterwards. It is in memory if there is space:
    even in a short test a node syncs to the disk some sixty times, which takes most of the time on a busy disk."""
    path = _made(memory)
    _remove_leftovers(path.parent)
    try:
        with _held(path):
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _made(memory: Path) -> Path:
    try:
        in_memory = shutil.disk_usage(memory).free >= ROOM
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=memory if in_memory else _disk()))
    except OSError:  # it does not exist, or is not writable
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=_disk()))


def _disk() -> Path:
    """Return TMPDIR, unless its path is too long for the root of a node."""
    usual = Path(tempfile.gettempdir())
    fits = longest_socket_path(usual / f"{PREFIX}12345678") <= socket_paths.MAX_BYTES
    return usual if fits else SHORT


@contextmanager
def _held(root: Path) -> Iterator[None]:
    """Create the lock, which is held when it appears: otherwise another process could take the directory for a
    leftover."""
    unseen = root / f"{TEST_LOCK}-new"
    fd = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        unseen.rename(root / TEST_LOCK)
        yield
    finally:
        os.close(fd)


def _remove_leftovers(folder: Path) -> None:
    for lock in folder.glob(f"{PREFIX}*/{TEST_LOCK}"):
        try:
            fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # it was just removed, or belongs to another user
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        except BlockingIOError:
            pass  # a test uses it
        finally:
            os.close(fd)
