"""Replace a file so that a reader, and a restart after a power cut, finds either the old content or the new.

These functions block on the disk: call them in a thread (`anyio.to_thread.run_sync`).
"""

import os
import tempfile
from pathlib import Path


def write(path: Path, content: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Durable when it returns, unless that is not wanted: then a power cut may take the file. On an error the old file
    is as it was. The mode holds whatever the umask is."""
    fd, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(fd, mode)
            if durable:
                os.fsync(fd)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: what was created, renamed or removed there."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_leftovers(path: Path) -> int:
    """Delete what writes of `path` left behind when their process was killed, and say how many.

    Only for the file's owner, and not while it writes."""
    prefix, suffix = f".{path.name}.", ".tmp"
    found = [p for p in path.parent.iterdir() if p.name.startswith(prefix) and p.name.endswith(suffix)]
    for leftover in found:
        leftover.unlink(missing_ok=True)
    return len(found)
