"""One prepare or unprepare at a time, also among the instances of a driver that run beside each other.

    async with exclusion:
        ...

Instances share a lock file. The lock on it belongs to an open file (`F_OFD_SETLKW`), as the reference's helper takes
it: `flock` and such locks do not see each other, so a driver in Go and one in Python exclude each other only this way.
The file is never removed, because two instances could then each lock a file of that name.
"""

import asyncio
import errno
import fcntl
import os
import struct
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Final

import anyio

from devlet.sdk.disk_errors import explained

__all__ = ["LOCK_NAME", "Exclusion"]

LOCK_NAME: Final = "serialize.lock"
FILE_MODE = 0o666  # less what the umask takes

_F_OFD_SETLK, _F_OFD_SETLKW = 37, 38  # of Linux, on all its architectures


class Exclusion:
    """For one event loop. `path` is None: only within this process. Not for a task that has it already."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._here = anyio.Lock()
        self._fd: int | None = None
        self._waiting: _Waiting | None = None  # at most one thread waits, whoever it is for

    async def __aenter__(self) -> None:
        await self._here.acquire()
        try:
            if self._path is not None:
                self._fd = await self._locked(self._path)
        except BaseException:
            self._here.release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            _unlock(fd)
        self._here.release()

    async def _locked(self, path: Path) -> int:
        """Whoever is cancelled leaves the thread waiting, for the next one; if there is none by the time it has the
        lock, it gives it back."""
        event = anyio.Event()
        if self._waiting is None or not self._waiting.take_over(event):
            self._waiting = _Waiting(path, event)
        waiting = self._waiting
        try:
            await event.wait()
        except BaseException:
            waiting.abandon()
            raise
        self._waiting = None
        with explained(f"{path} cannot be locked"):
            return waiting.result()


class _Waiting:
    """A thread of its own: it may take long, and must keep nobody's place in a pool, nor a process from ending."""

    def __init__(self, path: Path, event: anyio.Event) -> None:
        self._path = path
        self._guard = Lock()  # for all of the below
        self._event: anyio.Event | None = event
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._fd: int | None = None
        self._error: OSError | None = None
        Thread(target=self._run, name=f"waits for {path.name}", daemon=True).start()

    def take_over(self, event: anyio.Event) -> bool:
        """False if it is over."""
        with self._guard:
            if not self._is_over:
                self._event = event
            return not self._is_over

    def abandon(self) -> None:
        with self._guard:
            self._event = None
            self._give_back()

    def result(self) -> int:
        if self._error is not None:
            raise self._error
        assert self._fd is not None
        return self._fd

    def _run(self) -> None:
        try:
            fd: int | None = _lock(self._path)
        except OSError as e:
            fd, self._error = None, e
        with self._guard:
            self._is_over, self._fd = True, fd
            if self._event is None or not self._tell(self._event):
                self._give_back()

    def _tell(self, event: anyio.Event) -> bool:
        try:
            self._loop.call_soon_threadsafe(event.set)
        except RuntimeError:  # the loop is closed
            return False
        return True

    def _give_back(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            _unlock(fd)


def _lock(path: Path) -> int:
    """Blocks until nobody else has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.fcntl(fd, _F_OFD_SETLKW, _whole_file(fcntl.F_WRLCK))
    except OSError as e:
        if e.errno == errno.EINVAL:  # a kernel before 3.15, where the reference does the same
            fcntl.flock(fd, fcntl.LOCK_EX)
            return fd
        os.close(fd)
        raise
    return fd


def _unlock(fd: int) -> None:
    """Closing alone would leave it locked if a child of this process has the file, too."""
    try:
        fcntl.fcntl(fd, _F_OFD_SETLK, _whole_file(fcntl.F_UNLCK))
    except OSError:
        fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def _whole_file(kind: int) -> bytes:
    """The kernel's `struct flock`: type, whence, start, length, and a process id that must be 0."""
    return struct.pack("hhqqi0q", kind, os.SEEK_SET, 0, 0, 0)
