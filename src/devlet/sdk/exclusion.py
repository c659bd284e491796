"""Allow one prepare or unprepare at a time, also among several instances of a driver.

    async with exclusion:
        ...

Instances share a lock file. The lock belongs to an open file (`F_OFD_SETLKW`), as in the Go helper: `flock` and such
locks do not affect each other, and drivers in Go and in Python have to exclude each other. The file is never removed,
because two instances could then each lock a file of that name.
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
    """For one event loop. With `path` None it excludes only tasks of this process. A task that holds it must not enter
    it again."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._here = anyio.Lock()
        self._fd: int | None = None
        self._waiting: _Waiting | None = None  # at most one thread waits, for any task

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
        """Wait for the lock in a thread. If this task is cancelled, the thread keeps waiting for the next task; if
        there is none when it gets the lock, it releases the lock."""
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
    """A waiting thread. It is a thread of its own, because it may wait long, and must neither use up a thread pool nor
    keep the process from ending."""

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
        """Notify this event instead. Return False if the thread has ended already."""
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
    """Lock the file. Blocks until no other process holds the lock."""
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
    """Unlock and close the file. Closing alone would leave it locked if a child process has the file open as well."""
    try:
        fcntl.fcntl(fd, _F_OFD_SETLK, _whole_file(fcntl.F_UNLCK))
    except OSError:
        fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def _whole_file(kind: int) -> bytes:
    """Return the kernel's `struct flock`: type, whence, start, length, and a process id that must be 0."""
    return struct.pack("hhqqi0q", kind, os.SEEK_SET, 0, 0, 0)
