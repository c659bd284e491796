"""A lock for one process at a time, which the kernel releases when the process ends in any way.

The lock is `flock` on the file; the process id in the file is only for messages. The file stays when the lock is
released, because two processes could otherwise each lock a file of that name.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from devlet.errors import InUse, InvalidInput

_PID_BYTES = 32


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock while the block runs. Raise InUse, which names the process that holds it, if it is taken."""
    fd = acquire(path)
    try:
        yield
    finally:
        os.close(fd)


def acquire(path: Path) -> int:
    """Take the lock and return its file descriptor. Raise InUse, which names the process that holds it, if it is
    taken."""
    with ExitStack() as on_error:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            on_error.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            raise InUse(f"{path.parent} is in use by {_holder(fd)}, which holds {path}") from None
        except OSError as e:
            raise InvalidInput(f"{path} cannot be locked: {e.strerror or e}") from e
        on_error.pop_all()
        return fd


def _holder(fd: int) -> str:
    text = os.pread(fd, _PID_BYTES, 0).strip()
    return f"process {int(text)}" if text.isdigit() else "another process"
