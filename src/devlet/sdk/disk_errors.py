"""Explain errors of the disk: which file, why, and what to do.

The system's own text ("Permission denied") does not say who has to act.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from devlet.errors import Unavailable

__all__ = ["explained"]

_ADVICE = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room on that disk",
    errno.EROFS: "mount it for writing, or choose another directory",
    errno.EISDIR: "something else has that name, move it away",
    errno.ENOTDIR: "a part of the path is not a directory, move it away",
    errno.EEXIST: "something else has that name, move it away",
    errno.ENOTEMPTY: "something else has that name, move it away",
    errno.ENAMETOOLONG: "choose a shorter directory",
    errno.ENOENT: "make the directory",
    errno.EIO: "the disk may be broken",
}


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Raise Unavailable for errors of the disk in the block. `what` is the beginning of the message: `X cannot be
    written`."""
    try:
        yield
    except OSError as e:
        raise Unavailable(f"{what}: {e.strerror or e}{_advice(e)}") from e


def _advice(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"; let uid {os.geteuid()}, as which the driver runs, write there, or choose another directory"
    advice = _ADVICE.get(error.errno or 0)
    return f"; {advice}" if advice else ""
