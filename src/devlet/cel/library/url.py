"""URLs and their parts: `url("https://example.com:80/a?b=c").getHost()`.

`url()` requires an absolute URL or an absolute path. The other parts that `Url` can hold (a fragment) only matter for
comparisons. Strings are processed as bytes: `%ff` is one byte, and printed as U+FFFD where it is not UTF-8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final

from devlet.cel.functions import CallEstimate, Function, Library, Overload, SizedNode
from devlet.cel.library.go_text import quoted
from devlet.cel.library.ip import BadAddress, parse_address
from devlet.cel.library.ranges import STRING_FACTOR, one, scaled, scan_cost, size_of
from devlet.cel.types import BOOL, STRING, Type, list_of, map_of, object_type
from devlet.cel.values import CelError

URL_TYPE: Final = object_type("kubernetes.URL")

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")
_UNRESERVED = _LETTERS | _DIGITS | set("-_.~")
_HEX = frozenset("0123456789abcdefABCDEF")

# Characters allowed unescaped in each part.
_IN_PATH = _UNRESERVED | set("$&+,/:;=@")
_IN_HOST = _UNRESERVED | set("!$&'()*+,;=:[]<>\"")
_IN_USER = _UNRESERVED | set("$&+,;=")
_IN_QUERY = _UNRESERVED
_IN_FRAGMENT = _UNRESERVED | set("$&+,/:;=?@!()*")
_USER_TEXT = _UNRESERVED | set(":!$&'()*+,;=%@")
_ENCODED_TEXT = frozenset("!$&'()*+,;=:@[]%")

_MAX_QUERY_PARAMETERS = 10_000


class BadUrl(ValueError):
    """The string is not a URL. The text is the reference's."""


# Escapes


def _escape(text: str, allowed: frozenset[str]) -> str:
    data = text.encode(errors="surrogateescape")
    return "".join(chr(byte) if chr(byte) in allowed and byte < 0x80 else f"%{byte:02X}" for byte in data)


def _unescape(text: str, *, plus: bool = False) -> str:
    """Decode escapes. Bytes that are not UTF-8 become lone surrogates."""
    _check_escapes(text)
    if plus:
        text = text.replace("+", " ")
    first, *others = text.split("%")
    parts = [first.encode(), *(bytes((int(part[:2], 16),)) + part[2:].encode() for part in others)]
    return b"".join(parts).decode(errors="surrogateescape")


def _check_escapes(text: str, zone: bool | None = None) -> None:
    """Check escapes. In a host only non-ASCII bytes may be escaped, in a zone only characters that are allowed there
    unescaped."""
    i = 0
    while i < len(text):
        if text[i] == "%":
            escape = text[i : i + 3]
            if len(escape) < 3 or not _HEX.issuperset(escape[1:]) or not _may_escape(escape, zone):
                # Go cuts after three bytes, even in the middle of a character.
                cut = text[i:].encode()[:3].decode(errors="surrogateescape")
                raise BadUrl(f"invalid URL escape {_quoted_bytes(cut)}")
            i += 3
            continue
        if zone is not None and text[i] < "\x80" and text[i] not in _IN_HOST:
            raise BadUrl(f"invalid character {quoted(text[i])} in host name")
        i += 1


def _quoted_bytes(text: str) -> str:
    return (
        '"' + "".join(f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else quoted(c)[1:-1] for c in text) + '"'
    )


def _may_escape(escape: str, zone: bool | None) -> bool:
    if zone is None or escape == "%25":
        return True
    code = int(escape[1:], 16)
    return (code == 0x20 or chr(code) in _IN_HOST) if zone else code >= 0x80


def _unescape_host(text: str, *, zone: bool = False) -> str:
    _check_escapes(text, zone)
    return _unescape(text)


# Parsing


@dataclass(frozen=True)
class Url:
    """The parts in decoded form (`path`) and, where it differs, as they were written (`raw_path`)."""

    cel_type: ClassVar[Type] = URL_TYPE

    scheme: str = ""
    opaque: str = ""
    user: tuple[str, ...] | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    query: str = ""
    force_query: bool = False
    fragment: str = ""
    raw_fragment: str = ""
    omit_host: bool = False

    @property
    def escaped_path(self) -> str:
        if self.raw_path and _valid_encoded(self.raw_path, _IN_PATH):
            return self.raw_path
        return "*" if self.path == "*" else _escape(self.path, _IN_PATH)

    @property
    def escaped_fragment(self) -> str:
        if self.raw_fragment and _valid_encoded(self.raw_fragment, _IN_FRAGMENT):
            return self.raw_fragment
        return _escape(self.fragment, _IN_FRAGMENT)

    @cached_property
    def _text(self) -> str:
        start = f"{self.scheme}:" if self.scheme else ""
        body = self.opaque or self._authority() + self._path_text()
        query = f"?{self.query}" if self.force_query or self.query else ""
        fragment = f"#{self.escaped_fragment}" if self.fragment else ""
        return f"{start}{body}{query}{fragment}"

    def _authority(self) -> str:
        if not (self.scheme or self.host or self.user is not None):
            return ""
        if self.omit_host and not self.host and self.user is None:
            return ""
        slashes = "//" if self.host or self.path or self.user is not None else ""
        user = "" if self.user is None else ":".join(_escape(part, _IN_USER) for part in self.user) + "@"
        return f"{slashes}{user}{_escape(self.host, _IN_HOST)}"

    def _path_text(self) -> str:
        path = self.escaped_path
        if path and path[0] != "/" and self.host:
            return f"/{path}"
        alone = not (self.scheme or self.host or self.user is not None)
        return f"./{path}" if alone and ":" in path.partition("/")[0] else path

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Url) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


def _valid_encoded(text: str, allowed: frozenset[str]) -> bool:
    return all(c in _ENCODED_TEXT or (c in allowed and c < "\x80") for c in text)


def parse_request_uri(text: str) -> Url:
    """Parse an absolute URL or path. There is no fragment: `#` belongs to the part that it is in."""
    try:
        return _read(text, via_request=True)
    except BadUrl as e:
        raise BadUrl(f"parse {quoted(text)}: {e}") from e


def parse(text: str) -> Url:
    """Parse any URL, with its fragment."""
    before, _, fragment = text.partition("#")
    try:
        found = _read(before, via_request=False)
    except BadUrl as e:
        raise BadUrl(f"parse {quoted(before)}: {e}") from e
    if not fragment:
        return found
    try:
        meant = _unescape(fragment)
    except BadUrl as e:
        raise BadUrl(f"parse {quoted(text)}: {e}") from e
    raw = "" if _escape(meant, _IN_FRAGMENT) == fragment else fragment
    return replace(found, fragment=meant, raw_fragment=raw)


def _read(text: str, *, via_request: bool) -> Url:
    if any(c < " " or c == "\x7f" for c in text):
        raise BadUrl("net/url: invalid control character in URL")
    if via_request and not text:
        raise BadUrl("empty url")
    if text == "*":
        return Url(path="*")
    scheme, rest = _split_scheme(text)
    rest, mark, query = rest.partition("?")
    force_query = bool(mark) and not query
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=query, force_query=force_query)
        _check_relative(rest, via_request)
    user, host = None, ""
    has_host = rest.startswith("//") and bool(scheme or (not via_request and not rest.startswith("///")))
    if has_host:
        authority, slash, tail = rest[2:].partition("/")
        rest = slash + tail
        user, host = _read_authority(scheme, authority)
    path = _unescape(rest)
    raw_path = "" if _escape(path, _IN_PATH) == rest else rest
    omit_host = bool(scheme) and not has_host
    return Url(scheme, "", user, host, path, raw_path, query, force_query, omit_host=omit_host)


def _split_scheme(text: str) -> tuple[str, str]:
    for i, character in enumerate(text):
        if character in _LETTERS or (i and (character in _DIGITS or character in "+-.")):
            continue
        if character != ":":
            break
        if i == 0:
            raise BadUrl("missing protocol scheme")
        return text[:i].lower(), text[i + 1 :]
    return "", text


def _check_relative(rest: str, via_request: bool) -> None:
    if via_request:
        raise BadUrl("invalid URI for request")
    if ":" in rest.partition("/")[0]:
        raise BadUrl("first path segment in URL cannot contain colon")


def _read_authority(scheme: str, authority: str) -> tuple[tuple[str, ...] | None, str]:
    user, at, host = authority.rpartition("@")
    host = _read_host(scheme, host)
    if not at:
        return None, host
    if not _USER_TEXT.issuperset(user):
        raise BadUrl("net/url: invalid userinfo")
    return tuple(map(_unescape, user.split(":", 1))), host


def _read_host(scheme: str, host: str) -> str:
    opening = host.rfind("[")
    if opening > 0:
        raise BadUrl("invalid IP-literal")
    if opening == 0:
        return _read_literal(host)
    if ":" in host:
        # Only the schemes of browsers are strict about a second colon.
        last = host.index(":") if scheme in ("http", "https") else host.rindex(":")
        _check_port(host[last:])
    return _unescape_host(host)


def _read_literal(host: str) -> str:
    name, closing, port = host[1:].rpartition("]")
    if not closing:
        raise BadUrl("missing ']' in host")
    _check_port(port)
    address, percent, zone = name.partition("%25")
    name = _unescape_host(address) + (_unescape_host(percent + zone, zone=True) if percent else "")
    try:
        ip, _ = parse_address(name)
    except BadAddress as e:
        raise BadUrl(f"invalid host: {e}") from e
    if ip.bits == 32:
        raise BadUrl("invalid IP-literal")
    return f"[{name}]{port}"


def _is_port(text: str) -> bool:
    return not text or (text[0] == ":" and _DIGITS.issuperset(text[1:]))


def _check_port(text: str) -> None:
    if not _is_port(text):
        raise BadUrl(f"invalid port {quoted(text)} after host")


# The library


def is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except BadUrl:
        return False
    return True


def _url(text: str) -> Url:
    try:
        parse_request_uri(text)
        return parse(text)
    except BadUrl as e:
        raise CelError(f"URL parse error during conversion from string: {e}") from e


def _shown(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _split_host(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or not _is_port(":" + port):
        name, port = host, ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


def _query(url: Url) -> dict[str, list[str]]:
    """Parse the query. Invalid parameters are left out."""
    found: dict[str, list[str]] = {}
    if url.query.count("&") >= _MAX_QUERY_PARAMETERS:
        return found
    for part in url.query.split("&"):
        key, _, value = part.partition("=")
        try:
            name, content = _unescape(key, plus=True), _unescape(value, plus=True)
        except BadUrl:
            continue
        if part and ";" not in part:
            found.setdefault(_shown(name), []).append(_shown(content))
    return found


def _estimate_url(target: SizedNode | None, args: Sequence[SizedNode]) -> CallEstimate:
    size = size_of(args[0])
    return CallEstimate(scaled(size, STRING_FACTOR), size)


def _part(name: str, id: str, call: Callable[[Url], object], result: Type = STRING) -> Function:
    return Function(name, (Overload(id, (URL_TYPE,), result, call, is_member=True, estimate=one),))


LIBRARY: Final = Library(
    "kubernetes.urls",
    (
        Function(
            "url",
            (Overload("string_to_url", (STRING,), URL_TYPE, _url, estimate=_estimate_url, cost=scan_cost()),),
        ),
        Function("isURL", (Overload("is_url_string", (STRING,), BOOL, is_url),)),
        _part("getScheme", "url_get_scheme", lambda url: url.scheme),
        _part("getHost", "url_get_host", lambda url: _shown(url.host)),
        _part("getHostname", "url_get_hostname", lambda url: _shown(_split_host(url.host)[0])),
        _part("getPort", "url_get_port", lambda url: _split_host(url.host)[1]),
        _part("getEscapedPath", "url_get_escaped_path", lambda url: url.escaped_path),
        _part("getQuery", "url_get_query", _query, map_of(STRING, list_of(STRING))),
    ),
)
