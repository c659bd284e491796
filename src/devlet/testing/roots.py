"""Directories for nodes: short, because sockets go below them, and in memory if possible."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devlet.daemon.root import longest_socket_path
from devlet.kit import socket_paths

__all__ = ["temporary_root"]

PREFIX = "dv"
SHORT = Path("/tmp")
MEMORY = Path("/dev/shm")
ROOM = 64 << 20  # bytes; a node needs less than one of them


@contextmanager
def temporary_root(memory: Path = MEMORY) -> Iterator[Path]:
    """Empty, of our own, and removed afterwards. In memory if there is room: in a short life a node syncs to the
    disk some sixty times, and on a busy one that takes longer than all the rest."""
    path = _made(memory)
    try:
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
