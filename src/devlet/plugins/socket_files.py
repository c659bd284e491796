"""What lies at the path of a service socket, before anybody connects to it.

Nothing is fine: a driver may register before its service listens. What is there must be a socket, and belong to root or
to us, or else any user of this machine could take a driver's name.
"""

import os
import stat
from pathlib import Path

from devlet.kit import socket_paths
from devlet.kit.kept_files import kind
from devlet.plugins import endpoints

__all__ = ["refusal"]


def refusal(path: Path, below: Path | None = None) -> str:
    """Why nobody is called there, as the rest of a sentence that begins with the path. Empty if nothing speaks against
    it, now. `below` is the only directory in which sockets are called; None: everywhere."""
    if not path.is_absolute():
        return "is not an absolute path"
    if "\0" in str(path):
        return "has a zero byte"
    if (size := socket_paths.length(path)) > socket_paths.MAX_BYTES:
        return f"has {size} bytes, a socket path has at most {socket_paths.MAX_BYTES}"
    if below is not None and (elsewhere := endpoints.outside(path, below)):
        return elsewhere
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as e:
        return f"cannot be looked at: {e.strerror or e}"
    if not stat.S_ISSOCK(found.st_mode):
        return f"is {kind(found.st_mode)}, not a socket"
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to uid {found.st_uid}: a driver's socket must belong to root or to uid {os.geteuid()}"
    return ""
