"""Replace a file so that a reader, and a restart after a power cut, finds either the old content or the new.

These functions block on the disk: call them in a thread (`anyio.to_thread.run_sync`).
"""

import os
import tempfile
from pathlib import Path


def write(path: Path, content: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Replace the file. The content is durable when the function returns, unless `durable` is False: then a power cut
    may lose the file. On an error the old file is unchanged. The mode does not depend on the umask."""
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
    """Make the creation, renaming and removal of names in a directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_leftovers(path: Path) -> int:
    """Delete the temporary files of killed writers of `path`, and return how many there were.

    Only the file's owner may call this, and not while it writes."""
    prefix, suffix = f".{path.name}.", ".tmp"
    found = [p for p in path.parent.iterdir() if p.name.startswith(prefix) and p.name.endswith(suffix)]
    for leftover in found:
        leftover.unlink(missing_ok=True)
    return len(found)
