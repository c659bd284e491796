"""A minimal HTTP/1.1 client for API servers, over any connected socket.

The standard library's client imports the email parsers, which takes longer than the rest of a command. Every problem
with a connection raises ConnectionError; the connection cannot be used afterwards.
"""

import socket
from collections.abc import Iterable, Iterator

MAX_LINE = 65_536
MAX_HEADERS = 256
_PIECE = 1 << 18
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

Headers = Iterable[tuple[str, str]]


class Line:
    """One connection, one request at a time. The body of an answer must be read before the next request."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._file = connected.makefile("rb")

    def request(self, method: str, target: str, headers: Headers, body: bytes | None = None) -> "Answer":
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines)
        if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
            raise ConnectionError("a header must not contain line breaks")
        self._socket.sendall(head.encode("latin-1", "replace") + b"\r\n\r\n" + (body or b""))
        return self._answer()

    def wait_at_most(self, seconds: float | None) -> None:
        self._socket.settimeout(seconds)

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _answer(self) -> "Answer":
        status, headers = self._head()
        while 100 <= status < 200:
            status, headers = self._head()
        return Answer(status, headers, self._body(status, headers))

    def _head(self) -> tuple[int, dict[str, list[str]]]:
        first = self._line().split(None, 2)
        if len(first) < 2 or not first[0].startswith("HTTP/1.") or not _is_number(first[1]):
            raise ConnectionError(f"the response is not HTTP: {' '.join(first)[:60]!r}")
        headers: dict[str, list[str]] = {}
        for _ in range(MAX_HEADERS):
            if not (line := self._line()):
                return int(first[1]), headers
            name, _, value = line.partition(":")
            headers.setdefault(name.strip().lower(), []).append(value.strip())
        raise ConnectionError(f"the response has more than {MAX_HEADERS} headers")

    def _line(self) -> str:
        line = self._file.readline(MAX_LINE)
        if not line.endswith(b"\n"):
            raise ConnectionError("the connection was closed in the middle of a response")
        return line.rstrip(b"\r\n").decode("latin-1")

    def _body(self, status: int, headers: dict[str, list[str]]) -> Iterator[bytes]:
        if status in (204, 304):
            return
        if "chunked" in ",".join(headers.get("transfer-encoding", ())).lower():
            yield from self._chunks()
        elif length := headers.get("content-length"):
            if not _is_number(length[0]):
                raise ConnectionError(f"Content-Length {length[0][:40]!r} is not a number")
            yield from self._exactly(int(length[0]))
        else:
            while piece := self._file.read1(_PIECE):
                yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = self._line().partition(";")[0].strip()
            try:
                length = int(size, 16) if len(size) <= 15 else -1
            except ValueError:
                length = -1
            if length < 0:
                raise ConnectionError(f"the size of a chunk, {size[:40]!r}, is not a number")
            yield from self._exactly(length)
            if length == 0:
                while self._line():
                    pass  # trailers
                return
            if self._line():
                raise ConnectionError("a chunk is longer than its size")

    def _exactly(self, length: int) -> Iterator[bytes]:
        while length:
            piece = self._file.read1(min(length, _PIECE))
            if not piece:
                raise ConnectionError("the connection was closed in the middle of a response")
            length -= len(piece)
            yield piece


class Answer:
    """A response. `headers` maps lower-case names to values."""

    def __init__(self, status: int, headers: dict[str, list[str]], body: Iterator[bytes]) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    @property
    def closes(self) -> bool:
        framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        return not framed or "close" in ",".join(self.headers.get("connection", ())).lower()

    def read(self, limit: int) -> bytes | None:
        """Return the whole body, or None if it is longer than the limit."""
        pieces, size = [], 0
        for piece in self._body:
            size += len(piece)
            if size > limit:
                return None
            pieces.append(piece)
        return b"".join(pieces)

    def lines(self, limit: int) -> Iterator[bytes]:
        """Yield the body line by line, each as soon as it has arrived."""
        begun: list[bytes] = []
        size = 0
        for piece in self._body:
            *complete, rest = piece.split(b"\n")
            for line in complete:
                yield b"".join([*begun, line])
                begun, size = [], 0
            begun.append(rest)
            size += len(rest)
            if size > limit:
                raise ConnectionError(f"a line is longer than {limit} bytes")
        if size:
            yield b"".join(begun)


def quote(text: str) -> str:
    """Percent-encode a string as one segment of a path, or as a name or value of a query."""
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode())


def query_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the query with its question mark, or an empty string if there are no pairs."""
    joined = "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs)
    return f"?{joined}" if joined else ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15
