"""Safe output on a terminal: characters that control the terminal or reorder text are shown as escapes.

Names and messages come from drivers, plugins and other users. All output to a terminal is escaped; files and pipes get
it unchanged. devlet writes its own control sequences to the stream that `own` returns.
"""

import sys
from typing import Any, BinaryIO, TextIO

__all__ = ["own", "protect", "visible"]

_C0 = {code: f"^{chr(code ^ 64)}" for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n"}
_C1 = range(0x80, 0xA0)
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SEPARATORS = (0x2028, 0x2029)
_ESCAPES = _C0 | {code: f"\\u{code:04x}" for code in (*_C1, *_DIRECTIONS, *_SEPARATORS)}


def visible(text: str) -> str:
    """Return the text with control characters as `^[`, as kubectl shows them, and with C1 controls, bidirectional
    controls and line separators as `\\u` escapes. Tabs and line breaks stay."""
    return text.translate(_ESCAPES)


def protect() -> None:
    """Escape everything that this process writes to a terminal with `visible`."""
    sys.stdout, sys.stderr = _protected(sys.stdout), _protected(sys.stderr)


def own(stream: Any) -> TextIO:
    """Return the stream that writes control sequences to the terminal as they are."""
    found: TextIO = stream.unprotected if isinstance(stream, _Protected) else stream
    return found


def _protected(stream: Any) -> Any:
    """`stream` is None in a process without standard streams."""
    if stream is None or isinstance(stream, _Protected) or not stream.isatty():
        return stream
    return _Protected(stream)


class _Protected:
    """A text stream whose `write` escapes characters that would act on the terminal, and so does its buffer's."""

    def __init__(self, stream: TextIO) -> None:
        self.unprotected = stream

    @property
    def buffer(self) -> "_ProtectedBytes":
        return _ProtectedBytes(self.unprotected.buffer)

    def write(self, text: str) -> int:
        return self.unprotected.write(visible(text))

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unprotected, name)


class _ProtectedBytes:
    """The buffer of a protected stream. click writes bytes to it, and text that the locale cannot represent."""

    def __init__(self, buffer: BinaryIO) -> None:
        self._buffer = buffer

    def write(self, data: bytes) -> int:
        self._buffer.write(visible(bytes(data).decode(errors="backslashreplace")).encode())
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._buffer, name)
