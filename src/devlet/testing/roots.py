"""Directories for nodes: short, because sockets go below them, and in memory if possible.

Whoever uses one holds a lock in it. One whose lock nobody holds is left over from a process that was killed, and
removed by the next that needs one: what is in memory would stay there until the machine is restarted.
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
    """Empty but for a lock, of our own, and removed afterwards. In memory if there is room: in a short life a node
    syncs to the disk some sixty times, and on a busy one that takes longer than all the rest."""
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
    except OSError:  # it is not there, or not for us
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=_disk()))


def _disk() -> Path:
    """TMPDIR, unless its path is so long that no node could have its root there."""
    usual = Path(tempfile.gettempdir())
    fits = longest_socket_path(usual / f"{PREFIX}12345678") <= socket_paths.MAX_BYTES
    return usual if fits else SHORT


@contextmanager
def _held(root: Path) -> Iterator[None]:
    """The lock appears when it is held already, or somebody could take the root for a leftover."""
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
            continue  # it has just gone, or is somebody else's
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        except BlockingIOError:
            pass  # a test uses it
        finally:
            os.close(fd)
