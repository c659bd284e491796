"""Output on a terminal: characters that would control it, or reorder what it shows, are shown as escapes instead.

Names and messages come from drivers, plugins and other users. All output passes here if it goes to a terminal; files
and pipes get it as it is. The control characters below 32 are escaped where text is laid out (`tables.printable`),
because devlet's own colours use them.
"""

import sys
from typing import Any, TextIO

__all__ = ["protect", "visible"]

_CONTROLS = range(0x80, 0xA0)
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SEPARATORS = (0x2028, 0x2029)
_ESCAPES = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_DIRECTIONS, *_SEPARATORS)}


def visible(text: str) -> str:
    """Return the text with C1 controls, bidirectional controls and line separators as `\\u` escapes."""
    return text if text.isascii() else text.translate(_ESCAPES)


def protect() -> None:
    """Escape everything that this process writes to a terminal with `visible`."""
    sys.stdout, sys.stderr = _protected(sys.stdout), _protected(sys.stderr)


def _protected(stream: Any) -> Any:
    """`stream` is None in a process without standard streams."""
    if stream is None or isinstance(stream, _Protected) or not stream.isatty():
        return stream
    return _Protected(stream)


class _Protected:
    """A text stream whose `write` escapes characters that would act on the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible(text))

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
