"""Kill processes that a program leaves behind, including those in sessions of their own.

    with adopting():                                    # orphans below us become our children
        ...                                             # start a program with `MARK=…` in its environment, wait for it
        await end(mark)

Only children of this process that have the mark are killed: the pid of a child is not reused before it is waited for. A
process that changed its environment is not found. Linux only; on other systems no process is found.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio

__all__ = ["MARK", "adopting", "end", "of"]

MARK = "DEVLET_STARTED_AS"

_PR_SET_CHILD_SUBREAPER = 36
_LOOK = 0.01  # seconds between checks of a process that was killed
_WITHIN = 5.0  # seconds; a process that hangs in the kernel does not end


@contextmanager
def adopting() -> Iterator[None]:
    _set_subreaper(True)
    try:
        yield
    finally:
        _set_subreaper(False)


def _set_subreaper(is_one: bool) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_one), 0, 0, 0)


def of(mark: str) -> list[int]:
    """Return the running children of this process that have the mark."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _children() if wanted in _environment(pid)]


async def end(mark: str) -> bool:
    """Kill these processes, and those that become orphans by that. Return True if there were any."""
    found = False
    with anyio.move_on_after(_WITHIN, shield=True):
        while pids := of(mark):
            found = True
            for pid in pids:
                with suppress(PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pid in pids:
                while not _is_reaped(pid):  # noqa: ASYNC110  there is no event
                    await anyio.sleep(_LOOK)
    return found


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True


def _children() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text(errors="replace").rpartition(") ")[2].split()[:2]
            if int(parent) == os.getpid() and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
