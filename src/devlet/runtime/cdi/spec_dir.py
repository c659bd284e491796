"""Find and read CDI specs on disk.

Only `*.json` and `*.yaml` in the directory itself count: writers create a file under another name and rename it. These
functions block on the disk.
"""

import os
import stat
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.runtime.cdi.codec import decode
from devlet.runtime.cdi.spec import Spec

__all__ = ["DEFAULT_DIRECTORIES", "Settings", "Stamp", "list_files", "read", "stamp"]

DEFAULT_DIRECTORIES = (Path("/etc/cdi"), Path("/var/run/cdi"))  # later ones take precedence
SUFFIXES = (".json", ".yaml")


@dataclass(frozen=True, slots=True)
class Settings:
    max_bytes: int = 1024 * 1024  # of one file
    max_entries: int = 16_384  # of one directory


class Stamp(Struct, frozen=True, gc=False):
    """Identifies the content of a file: it differs if the content does."""

    device: int
    inode: int
    size: int
    modified: int  # nanoseconds, as for `changed`
    changed: int


def list_files(directory: Path, settings: Settings = Settings()) -> list[Path]:
    """Return the spec files sorted by name. A missing directory has none. Raise InvalidInput if it cannot be read."""
    try:
        with os.scandir(directory) as entries:
            found = list(islice(entries, settings.max_entries + 1))
    except FileNotFoundError:
        return []
    except OSError as e:
        raise InvalidInput(f"{directory}: {e.strerror}") from e
    if len(found) > settings.max_entries:
        raise InvalidInput(f"{directory}: more than {settings.max_entries} files")
    return sorted(directory / e.name for e in found if Path(e.name).suffix in SUFFIXES and not _is_directory(e))


def stamp(path: Path) -> Stamp:
    """Raise NotFound if the file does not exist, InvalidInput if it cannot be accessed."""
    try:
        return _stamp(path.stat())
    except FileNotFoundError as e:
        raise NotFound(f"{path}: {e.strerror}") from e
    except OSError as e:
        raise InvalidInput(f"{path}: {e.strerror}") from e


def read(path: Path, settings: Settings = Settings()) -> tuple[Stamp, Spec]:
    """Read a spec, and the stamp from before it was read. Raise NotFound if the file does not exist, InvalidInput if it
    is not a valid spec."""
    found, content = _content(path, settings.max_bytes)
    try:
        return found, decode(content)
    except InvalidInput as e:
        raise InvalidInput(f"{path}: {e}") from e


def _content(path: Path, limit: int) -> tuple[Stamp, bytes]:
    try:
        # A pipe of that name must not block.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InvalidInput(f"{path}: not a file")
            content = file.read(limit + 1)
    except FileNotFoundError as e:
        raise NotFound(f"{path}: {e.strerror}") from e
    except OSError as e:
        raise InvalidInput(f"{path}: {e.strerror}") from e
    if len(content) > limit:
        raise InvalidInput(f"{path}: larger than {limit} bytes")
    return _stamp(status), content


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
