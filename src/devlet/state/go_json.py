"""JSON as Go decodes and encodes it, where that differs from Python.

Decoding: names match in any case, fields may be repeated, null leaves a value unchanged, and numbers remain literals
until they are converted. So objects are pairs here, not dicts, and each function stands for a Go type. `Malformed` is
raised for what Go refuses; it gives the reason without naming the file.
"""

import base64
import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_REPLACEMENT = "\ufffd"
_ERRORS = "devlet.go"
_SURROGATES = re.compile("[\ud800-\udfff]")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
# Besides ASCII letters, these two equal an ASCII letter when case is ignored.
_FOLDED = str.maketrans({"\u017f": "s", "\u212a": "k"})
# Go encodes JSON that is safe inside HTML.
_ESCAPED = re.compile("[<>&\u2028\u2029]")


class Malformed(ValueError):
    """Not JSON, or not of the expected shape; `where` is a path such as `Data.RegisteredDevices`."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.where = where

    def inside(self, name: str) -> "Malformed":
        return Malformed(self.reason, name + ("." if self.where[:1] not in ("", "[") else "") + self.where)


class Members(tuple[tuple[str, Any], ...]):
    """An object: names and values in order, including repeated ones."""


class Number(str):
    """A number as its literal."""


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return one U+FFFD for each invalid byte, like Go; Python would join some."""
    assert isinstance(error, UnicodeDecodeError | UnicodeEncodeError)
    text = _REPLACEMENT * (error.end - error.start)
    return text if isinstance(error, UnicodeDecodeError) else text.encode(), error.end


codecs.register_error(_ERRORS, _replaced)


def utf8(text: str) -> bytes:
    """Encode as UTF-8. Lone surrogates become U+FFFD."""
    return text.encode("utf-8", _ERRORS)


def valid(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded as UTF-8, with U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub(_REPLACEMENT, text)


def loose(blob: bytes) -> str:
    """Decode the bytes of a file, with U+FFFD for bytes that are not UTF-8."""
    return blob.decode("utf-8", _ERRORS)


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not JSON")


DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=_no_constant)


def parse(blob: bytes) -> Any:
    """Parse one value with nothing after it."""
    if blob.startswith(codecs.BOM_UTF8):
        raise Malformed("it begins with a byte order mark")
    if not blob.strip(b" \t\r\n"):
        raise Malformed("it is empty")
    try:
        return DECODER.decode(loose(blob))
    except json.JSONDecodeError as e:
        what = e.msg.removesuffix(" at").removesuffix(" starting")
        raise Malformed(f"it is not JSON at line {e.lineno}, column {e.colno}: {what[:1].lower()}{what[1:]}") from e
    except RecursionError as e:
        raise Malformed("it is nested too deeply") from e


def fold(name: str) -> str:
    """Return the same string for all names that Go considers equal."""
    return name.translate(_FOLDED).lower()


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """Decode a struct: yield folded names and values. null has none."""
    return ((fold(name), member) for name, member in pairs(value) or ())


def pairs(value: Any) -> Members | None:
    """Decode a map: return names as they are, and values."""
    if value is not None and not isinstance(value, Members):
        raise Malformed(f"expected an object, found {_kind(value)}")
    return value


def items(value: Any) -> list[Any] | None:
    if value is not None and not isinstance(value, list):
        raise Malformed(f"expected a list, found {_kind(value)}")
    return value


def string(value: Any, before: str = "") -> str:
    """Decode a string. null leaves the previous value."""
    if value is None:
        return before
    if not isinstance(value, str) or isinstance(value, Number):
        raise Malformed(f"expected a string, found {_kind(value)}")
    return valid(value)


def strings(value: Any) -> tuple[str, ...] | None:
    found = items(value)
    return None if found is None else tuple([string(item) for item in found])


def octets(value: Any) -> bytes | None:
    """Decode base64 with padding, in the standard alphabet. Line breaks are ignored."""
    if value is None:
        return None
    text = string(value).replace("\r", "").replace("\n", "")
    if len(text) % 4 or not _BASE64.fullmatch(text):  # Python would take more padding than there should be
        raise Malformed("expected padded base64 in the standard alphabet")
    return base64.b64decode(text)


def keys(value: Any, before: frozenset[str] | None = None) -> frozenset[str] | None:
    """Decode a set, which is a map to empty structs. A repeated field is merged."""
    found = pairs(value)
    if found is None:
        return None
    for _, member in found:
        pairs(member)
    return (before or frozenset()) | {valid(name) for name, _ in found}


def unsigned(value: Any, before: int = 0, *, bits: int = 64) -> int:
    """Decode a uint64, or a uint32."""
    if value is None:
        return before
    if not isinstance(value, Number) or not value.isdigit() or len(value) > 20 or int(value) >= 1 << bits:
        raise Malformed(f"expected a non-negative integer of {bits} bits, found {_kind(value)}")
    return int(value)


def signed(value: Any, before: int = 0) -> int:
    """Decode an int64."""
    if value is None:
        return before
    if not isinstance(value, Number):
        raise Malformed(f"expected an integer of 64 bits, found {_kind(value)}")
    return integer(value, "an integer of 64 bits")


def integer(key: str, expected: str = "integers of 64 bits as keys") -> int:
    """Decode an int64 that is the key of a map."""
    # int() would also take blanks, underscores and other digits, and would not take thousands of them.
    if not _INTEGER.fullmatch(key) or len(key) > 1000 or not -(1 << 63) <= (number := int(key)) < 1 << 63:
        raise Malformed(f"expected {expected}, found {key[:40]!r}")
    return number


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Add the field to the place that errors of the block name."""
    try:
        yield
    except Malformed as e:
        raise e.inside(name) from e


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Number():
            return f"the number {value[:40]}"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def dump(value: Any) -> bytes:
    """Encode like Go: compact, maps in the given order, and non-ASCII characters unescaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return utf8(_ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
