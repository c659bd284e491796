"""One conversation with an API server: requests and answers in JSON, over TLS or a node's socket.

It is synchronous and on the standard library: a command asks and ends, and importing an event loop would take longer
than the answer. An idle connection may be closed by the server at any time, so one that rested is not used again.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from devlet.cluster.remote.connection import Connection
from devlet.errors import DevletError, Forbidden, TooLarge, Unavailable

if TYPE_CHECKING:
    import ssl

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"

CONNECT_TIMEOUT = 10.0  # seconds, as all below
ANSWER_TIMEOUT = 65.0  # the server gives up after 60
REST = 10.0
LONGEST_RETRY = 10.0
RETRIES = 5
PAGE = 500  # objects, as kubectl
MAX_ANSWER_BYTES = 1 << 30
MAX_EVENT_BYTES = 64 << 20

Document = dict[str, Any]
Query = Sequence[tuple[str, str]]


class Session:
    """`warn` gets what the server wants people to know, such as that a version is deprecated; `start` is the command
    that would start a devlet where none answers."""

    def __init__(self, connection: Connection, *, warn: Callable[[str], None], start: str = "devlet up") -> None:
        self.namespace = connection.namespace
        self.address = connection.address
        self._connection = connection
        self._warn = warn
        self._start = start
        self._prefix = urlsplit(connection.server).path.rstrip("/")
        self._open: HTTPConnection | None = None
        self._used = 0.0
        self._proof: tuple[list[tuple[str, str]], ssl.SSLContext | None] | None = None

    def get(self, path: str, query: Query = (), *, accept: str = JSON) -> Document:
        return self.send("GET", path, query=query, accept=accept)[1]

    def pages(self, path: str, query: Query = (), *, accept: str = JSON) -> Iterator[Document]:
        """A list in as many answers as the server wants to give."""
        cursor: Query = ()
        while True:
            page = self.get(path, [*query, ("limit", str(PAGE)), *cursor], accept=accept)
            yield page
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            cursor = [("continue", str(token))]

    def send(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        *,
        query: Query = (),
        content_type: str = JSON,
        accept: str = JSON,
    ) -> tuple[int, Document]:
        """The HTTP code and the document of a request that succeeded. Repeated only where the server asks for it."""
        for attempt in range(RETRIES + 1):
            with self._errors():
                answer = self._request(self._connected(), method, path, query, body, content_type, accept)
                content = answer.read(MAX_ANSWER_BYTES + 1)
                self._used = time.monotonic()
                if answer.will_close:
                    self._drop()
            if len(content) > MAX_ANSWER_BYTES:
                self._drop()
                raise TooLarge(f"{self.address}{path}: the answer has more than {MAX_ANSWER_BYTES} bytes")
            if answer.status < 300:
                return answer.status, self._decode(path, content)
            wait = _retry_after(answer)
            if answer.status not in (429, 503) or wait is None or attempt == RETRIES:
                break
            time.sleep(min(wait, LONGEST_RETRY))
        raise self._error(answer.status, content)

    def watch(self, path: str, query: Query = (), *, accept: str = JSON, timeout: float | None = None) -> Iterator[Document]:
        """Events until the server ends the stream, which it may do at any time, or until `timeout`."""
        asked = [*query, ("watch", "true"), ("allowWatchBookmarks", "true")]
        if timeout is not None:
            asked.append(("timeoutSeconds", str(max(1, round(timeout)))))
        with self._errors():
            connection = self._connect()
        try:
            with self._errors():
                answer = self._request(connection, "GET", path, asked, None, JSON, accept)
                if answer.status >= 300:
                    raise self._error(answer.status, answer.read(MAX_EVENT_BYTES))
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            with suppress(HTTPException, OSError):  # however a stream ends, the caller asks again
                while line := answer.readline(MAX_EVENT_BYTES):
                    yield self._decode(path, line)
        finally:
            connection.close()

    def close(self) -> None:
        self._drop()

    def _request(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        query: Query,
        body: Document | None,
        content_type: str,
        accept: str,
    ) -> HTTPResponse:
        headers = {"Accept": accept, "User-Agent": "devlet"}
        content = None
        if body is not None:
            content = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = content_type
        connection.putrequest(method, self._prefix + path + (f"?{urlencode(query)}" if query else ""))
        for name, value in [*headers.items(), *self._headers()]:
            connection.putheader(name, value)
        if content is not None:
            connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content)
        answer = connection.getresponse()
        for warning in answer.headers.get_all("Warning", ()):
            self._warn(_warning(warning))
        return answer

    def _connected(self) -> HTTPConnection:
        if self._open is not None and time.monotonic() - self._used > REST:
            self._drop()
        if self._open is None:
            self._open = self._connect()
        return self._open

    def _connect(self) -> HTTPConnection:
        connection = _Line(self._connection, self._tls())
        connection.connect()
        assert connection.sock is not None
        connection.sock.settimeout(ANSWER_TIMEOUT)
        return connection

    def _drop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _headers(self) -> list[tuple[str, str]]:
        return self._proven()[0]

    def _tls(self) -> "ssl.SSLContext | None":
        return self._proven()[1]

    def _proven(self) -> "tuple[list[tuple[str, str]], ssl.SSLContext | None]":
        if self._proof is None:
            self._proof = ([], None)
            if self._connection.socket is None:
                from devlet.cli.credentials import prove

                self._proof = prove(self._connection)
        return self._proof

    def _decode(self, path: str, content: bytes) -> Document:
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise DevletError(f"{self.address}{path}: expected a JSON object; is this a Kubernetes API?")
        return document

    def _error(self, code: int, content: bytes) -> DevletError:
        from devlet.objects.statuses import error_from_answer

        error = error_from_answer(code, content)
        if code == 401:
            return Forbidden(f"{self.address} does not accept these credentials ({error}): look at the user in the kubeconfig")
        return error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, HTTPException) as e:
            self._drop()
            raise Unavailable(self._trouble(e)) from e

    def _trouble(self, error: Exception) -> str:
        path = self._connection.socket
        if path is not None and isinstance(error, FileNotFoundError | ConnectionRefusedError | NotADirectoryError):
            return f"no devlet runs on {path.parent}: start one with `{self._start}`"
        if path is not None and isinstance(error, PermissionError):
            return f"{path}: permission denied: it is open only to the user who runs devlet"
        if problem := getattr(error, "verify_message", ""):
            return f"{self.address}: its certificate is not trusted ({problem}): is the kubeconfig for this server?"
        if isinstance(error, TimeoutError):
            return f"{self.address} does not answer: is it still running?"
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return f"cannot talk to {self.address}: {text}"


class _Line(HTTPConnection):
    """http.client, over a Unix socket or with a name of its own in the certificate."""

    def __init__(self, to: Connection, tls: "ssl.SSLContext | None") -> None:
        url = urlsplit(to.server)
        super().__init__(url.hostname or "localhost", url.port or (443 if tls else 80), timeout=CONNECT_TIMEOUT)
        self._to = to
        self._tls = tls

    def connect(self) -> None:
        if self._to.socket is not None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(CONNECT_TIMEOUT)
            self.sock.connect(str(self._to.socket))
            return
        super().connect()
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._to.tls_server_name or self.host)


def segment(text: str, what: str) -> str:
    """A name as a piece of a path. Anything that would lead elsewhere is refused."""
    from devlet.errors import InvalidInput

    if not text or text in (".", "..") or "/" in text or "%" in text or not text.isprintable():
        raise InvalidInput(f'{what} {text!r}: expected a name, without "/" and "%"')
    return quote(text, safe="")


def _retry_after(answer: HTTPResponse) -> float | None:
    text = answer.getheader("Retry-After") or ""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _warning(header: str) -> str:
    """The text in `299 - "text"`."""
    text = header.partition(" ")[2].partition(" ")[2]
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if len(text) > 1 and text[0] == '"' else header
