"""State of a driver that survives restarts, in one file that is replaced as a whole.

    checkpoint = Checkpoint(directory / "leds.json", dict[str, int])
    brightness = checkpoint.load() or {}
    checkpoint.save(brightness | {"red": 7})

Saved state survives a kill and a power cut. A damaged file is never loaded; it is set aside, so that people can look at
it. Both calls block on the disk. For a driver that has to remember prepared claims, `claim_log` builds on this.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from devlet.errors import StateCorrupt, Unavailable
from devlet.kit import atomic_file
from devlet.kit.clock import Clock, SystemClock
from devlet.sdk.disk_errors import explained
from devlet.state import checkpoint_file

__all__ = ["Checkpoint"]

T = TypeVar("T")

FILE_MODE, DIRECTORY_MODE = 0o600, 0o750


class _File(Struct, frozen=True):
    kind: str
    version: int
    checksum: str  # of the other fields
    data: Raw


class Checkpoint(Generic[T]):
    """`type` is any type that msgspec encodes. `kind` identifies the file; the default is the type's name. When the
    type changes its meaning, increase `version` and add a function to `upgrades` that converts data of the previous
    version, as plain values, to the next one. Instances of a driver that share the file must hold an `Exclusion`."""

    def __init__(
        self,
        path: Path,
        type: type[T],
        *,
        kind: str = "",
        version: int = 1,
        upgrades: Mapping[int, Callable[[Any], Any]] = {},
        clock: Clock = SystemClock(),
    ) -> None:
        self.path = path
        self.kind = kind or getattr(type, "__name__", str(type))
        self.version = version
        self._type = type
        self._upgrades = upgrades
        self._clock = clock
        self._is_tidy = False
        self._foreign: StateCorrupt | None = None

    def load(self) -> T | None:
        """Return the saved value; None if nothing was saved yet.

        Raise StateCorrupt if the file is damaged, which sets it aside, so that the next `load` returns None. Also raise
        StateCorrupt for a file of another kind or of a newer version, which is not changed."""
        self._foreign = None
        with explained(f"{self.path} cannot be read"):
            content = self._content()
        if content is None:
            return None
        try:
            file = _verified(content)
        except (msgspec.DecodeError, ValueError) as e:
            raise self._set_aside(str(e)) from e
        self._check_ours(file)
        try:
            return self._value(file)
        except (msgspec.ValidationError, KeyError, TypeError, ValueError) as e:
            raise self._set_aside(f"{type(e).__name__}: {e}") from e

    def save(self, value: T) -> None:
        """Save the value durably. Raise Unavailable if that fails; the file is then unchanged. Raise StateCorrupt if
        `load` found a file of another kind or of a newer version."""
        if self._foreign is not None:
            raise self._foreign
        data = msgspec.json.encode(value, order="deterministic")
        file = _File(self.kind, self.version, _checksum(self.kind, self.version, data), Raw(data))
        with explained(f"{self.path} cannot be written"):
            self.path.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            self._tidy()
            atomic_file.write(self.path, msgspec.json.encode(file) + b"\n", FILE_MODE)

    def _content(self) -> bytes | None:
        try:
            return checkpoint_file.read(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _tidy(self) -> None:
        """Remove unfinished files, once. Only a caller that saves may do so: it is the only writer."""
        if not self._is_tidy:
            atomic_file.remove_leftovers(self.path)
            self._is_tidy = True

    def _check_ours(self, file: _File) -> None:
        if file.kind != self.kind:
            problem = f"is a checkpoint of kind {file.kind!r}, not {self.kind!r}: use another path"
        elif file.version > self.version:
            problem = f"has version {file.version}, and this driver knows {self.version}: run the newer driver again"
        else:
            return
        self._foreign = StateCorrupt(f"{self.path} {problem}, or move the file away. It is left as it is.")
        raise self._foreign

    def _value(self, file: _File) -> T:
        if file.version == self.version:
            return msgspec.json.decode(file.data, type=self._type)
        data = msgspec.json.decode(file.data)
        for version in range(file.version, self.version):
            data = self._upgrades[version](data)
        return msgspec.convert(data, self._type)

    def _set_aside(self, reason: str) -> StateCorrupt:
        try:
            aside = checkpoint_file.CheckpointFile(self.path).set_aside(self._clock.now())
        except Unavailable as e:
            return StateCorrupt(f"{self.path} is damaged ({reason}) and cannot be moved away: {e}")
        return StateCorrupt(f"{self.path} is damaged ({reason}). It is kept as {aside}; a new one begins empty.")


def _verified(content: bytes) -> _File:
    file = msgspec.json.decode(content, type=_File)
    if file.checksum != _checksum(file.kind, file.version, file.data):
        raise ValueError("its checksum does not match its content")
    return file


def _checksum(kind: str, version: int, data: bytes | Raw) -> str:
    return hashlib.sha256(f"{len(kind)} {kind} {version} ".encode() + bytes(data)).hexdigest()
