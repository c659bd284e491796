"""The values of literals: numbers within their limits, strings and bytes without quotes and escapes.

Every function raises ValueError with the reference's text. `\\x41` is a character in a string and a byte in bytes.
"""

import math
import re

from devlet.cel import lexer
from devlet.cel.lexer import Token
from devlet.cel.values import INT_MAX, INT_MIN, UINT_MAX, Constant, Uint

_ESCAPE = re.compile(r"\\(?:([xX])(..)|u(....)|U(.{8})|([0-3]..)|(.))", re.DOTALL)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def literal_value(token: Token, negative: bool) -> Constant:
    match token.kind:
        case "true" | "false":
            return token.kind == "true"
        case "null":
            return None
        case lexer.NUM_INT:
            return int_value(token.text, negative)
        case lexer.NUM_UINT:
            return uint_value(token.text)
        case lexer.NUM_FLOAT:
            return double_value(token.text, negative)
        case _:
            return string_value(token.text)


def int_value(text: str, negative: bool) -> int:
    value = _digits(text)
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError("invalid int literal")
    return value


def uint_value(text: str) -> Uint:
    value = _digits(text[:-1])
    if value > UINT_MAX:
        raise ValueError("invalid uint literal")
    return Uint(value)


def _digits(text: str) -> int:
    """Shorten a number that is too large anyway, because Python refuses to parse thousands of digits."""
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    return int(digits.lstrip("0")[:30] or "0", base)


def double_value(text: str, negative: bool) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("invalid double literal")
    return -value if negative else value


def string_value(text: str) -> str | bytes:
    is_bytes = text[0] in "bB"
    body, is_raw = _unquoted(text[1:] if is_bytes else text)
    if is_bytes:
        return body.encode() if is_raw else b"".join(_byte_pieces(body))
    return body if is_raw or "\\" not in body else _ESCAPE.sub(_character, body)


def _unquoted(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width], is_raw


def _character(match: re.Match[str]) -> str:
    _, hexadecimal, short, long, octal, plain = match.groups()
    if plain is not None:
        return _PLAIN.get(plain, plain)
    code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _byte_pieces(body: str) -> list[bytes]:
    pieces = []
    at = 0
    for match in _ESCAPE.finditer(body):
        pieces += [body[at : match.start()].encode(), _byte(match)]
        at = match.end()
    return [*pieces, body[at:].encode()]


def _byte(match: re.Match[str]) -> bytes:
    _, hexadecimal, short, long, octal, plain = match.groups()
    if short or long:
        raise ValueError("unable to unescape string")
    if plain is not None:
        return _PLAIN.get(plain, plain).encode()
    return bytes([int(octal, 8) if octal else int(hexadecimal, 16)])
