"""The format of a root: the number that a release raises if earlier releases must not use the root any more.

`devlet.version` in the root contains the number and the release that wrote it first. A root without the file belongs to
devlet 0.1 and has format 1. A start raises the number before it changes anything else, so that the earlier release
does not start on a root whose upgrade was interrupted. The database has a format of its own: see `log_file.MIGRATIONS`.
"""

import logging
from pathlib import Path

import msgspec
from msgspec import Struct

from devlet.errors import InvalidInput, StateCorrupt
from devlet.kit import atomic_file
from devlet.kit.facts import facts
from devlet.objects.release import DEVLET

__all__ = ["FILE", "FORMAT", "check", "claim"]

log = logging.getLogger(__name__)

FILE = "devlet.version"
FORMAT = 1  # raise it with the first change to any file of the root that an earlier release would misread

_FIRST = 1  # of roots without the file
_MAX_BYTES = 4096


class _Marker(Struct, frozen=True):
    format: int
    devlet: str = ""  # the release that wrote the number: this one and later ones can use the root


def check(root: Path) -> None:
    """Raise StateCorrupt if the root has a newer format. Change nothing in it."""
    _read(root)


def claim(root: Path) -> None:
    """Record that the root has our format from now on. The caller holds the root's lock."""
    path = root / FILE
    found = _read(root)
    if found is not None and found.format == FORMAT:
        return
    try:
        atomic_file.remove_leftovers(path)
        atomic_file.write(path, msgspec.json.encode(_Marker(FORMAT, DEVLET)) + b"\n", 0o644)
    except OSError as e:
        raise InvalidInput(f"{path} cannot be written: {e.strerror or e}") from e
    before = found.format if found else _FIRST
    if before != FORMAT:
        log.info("root upgraded", extra=facts(root=root, before=before, format=FORMAT))


def _read(root: Path) -> _Marker | None:
    path = root / FILE
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise InvalidInput(f"{path} cannot be read: {e.strerror or e}") from e
    try:
        found = msgspec.json.decode(content, type=_Marker)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise StateCorrupt(
            f"{path} is damaged: {e}. If no devlet newer than {DEVLET} has used this root, remove the file;"
            " the next start writes it again."
        ) from e
    if found.format > FORMAT:
        raise StateCorrupt(
            f"root {root} was upgraded to format {found.format} by devlet {found.devlet or '(unknown)'};"
            f" this is devlet {DEVLET}, which knows formats up to {FORMAT}."
            f" Use devlet {found.devlet or 'of that release'} or newer, or put back the copy of the root that was made"
            " before the upgrade."
        )
    return found
