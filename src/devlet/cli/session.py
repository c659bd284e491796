"""A synchronous session with an API server: requests and responses in JSON.

Importing an event loop would take longer than most requests. The server may close an idle connection at any time, so
one that was idle for a while is not reused.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from devlet.cli.http1 import Answer, Line, query_text, quote
from devlet.errors import DevletError, Forbidden, InvalidInput, TooLarge, Unavailable

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"

ANSWER_TIMEOUT = 65.0  # seconds, as all below; the server gives up after 60
REST = 10.0
LONGEST_RETRY = 10.0
RETRIES = 5
PAGE = 500  # objects, as kubectl
MAX_ANSWER_BYTES = 1 << 30
MAX_EVENT_BYTES = 64 << 20

Document = dict[str, Any]
Query = Sequence[tuple[str, str]]


class Server(Protocol):
    """How to connect to a server, and how to describe a failure."""

    @property
    def address(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def prefix(self) -> str:
        """The prefix of every path, without a trailing slash."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of commands that name none."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, str]]: ...

    @property
    def is_node(self) -> bool:
        """Whether it is a devlet on this machine, which serves views of its node."""
        ...

    def dial(self) -> socket.socket: ...

    def trouble(self, error: OSError) -> str:
        """Describe what went wrong with the connection, and what to do."""
        ...


class Session:
    """A session; `warn` is called with warnings of the server, for example about deprecated versions."""

    def __init__(self, server: Server, *, warn: Callable[[str], None]) -> None:
        self.address = server.address
        self.namespace = server.namespace
        self.is_node = server.is_node
        self._server = server
        self._warn = warn
        self._open: Line | None = None
        self._used = 0.0

    def get(self, path: str, query: Query = (), *, accept: str = JSON) -> Document:
        return self.send("GET", path, query=query, accept=accept)[1]

    def text(self, path: str) -> str:
        """Return a response that is not JSON, such as metrics."""
        with self._errors():
            answer = self._connected().request("GET", self._server.prefix + path, self._headers("text/plain"))
            found = self._read(answer)
        if answer.status >= 300:
            raise self._error(answer.status, found)
        return found.decode(errors="replace")

    def pages(self, path: str, query: Query = (), *, accept: str = JSON) -> Iterator[Document]:
        """Yield the pages of a list."""
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
        """Send a request, again if the server asks for it, and return the HTTP code and the document."""
        target = self._server.prefix + path + query_text(query)
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = self._headers(accept) + ([] if body is None else [("Content-Type", content_type)])
        for attempt in range(RETRIES + 1):
            with self._errors():
                answer = self._connected().request(method, target, headers, content)
                found = self._read(answer)
            self._show_warnings(answer)
            if answer.status < 300:
                return answer.status, self._decode(path, found)
            wait = _retry_after(answer)
            if answer.status not in (429, 503) or wait is None or attempt == RETRIES:
                break
            time.sleep(min(wait, LONGEST_RETRY))
        raise self._error(answer.status, found)

    def watch(
        self, path: str, query: Query = (), *, accept: str = JSON, timeout: float | None = None
    ) -> Iterator[Document]:
        """Yield events until the server ends the stream, which it may do at any time, or until `timeout`."""
        asked = [*query, ("watch", "true"), ("allowWatchBookmarks", "true")]
        if timeout is not None:
            asked.append(("timeoutSeconds", str(max(1, round(timeout)))))
        with self._errors():
            line = self._dial()
        try:
            with self._errors():
                answer = line.request("GET", self._server.prefix + path + query_text(asked), self._headers(accept))
                if answer.status >= 300:
                    raise self._error(answer.status, answer.read(MAX_EVENT_BYTES) or b"")
            self._show_warnings(answer)
            line.wait_at_most(timeout)
            with suppress(OSError):  # however the stream ends, the caller watches again
                for event in answer.lines(MAX_EVENT_BYTES):
                    yield self._decode(path, event)
        finally:
            line.close()

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _headers(self, accept: str) -> list[tuple[str, str]]:
        fixed = [("Host", self._server.host), ("User-Agent", "devlet"), ("Accept", accept)]
        return [*fixed, *self._server.headers]

    def _read(self, answer: Answer) -> bytes:
        content = answer.read(MAX_ANSWER_BYTES)
        if content is None:
            self.close()
            raise TooLarge(f"{self.address}: the response is larger than {MAX_ANSWER_BYTES} bytes")
        self._used = time.monotonic()
        if answer.closes:
            self.close()
        return content

    def _connected(self) -> Line:
        if time.monotonic() - self._used > REST:
            self.close()
        if self._open is None:
            self._open = self._dial()
        return self._open

    def _dial(self) -> Line:
        line = Line(self._server.dial())
        line.wait_at_most(ANSWER_TIMEOUT)
        return line

    def _show_warnings(self, answer: Answer) -> None:
        for warning in answer.headers.get("warning", ()):
            self._warn(_warning(warning))

    def _decode(self, path: str, content: bytes) -> Document:
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise DevletError(f"{self.address}{path}: the response is not a JSON object: is this a Kubernetes API?")
        return document

    def _error(self, code: int, content: bytes) -> DevletError:
        from devlet.objects.statuses import error_from_answer

        error = error_from_answer(code, content)
        if code == 401:
            return Forbidden(
                f"{self.address} does not accept the credentials: {error}: check the user in the kubeconfig"
            )
        return error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            self.close()
            raise Unavailable(self._server.trouble(e)) from e


def segment(text: str, what: str) -> str:
    """Quote a name as a segment of a path. Raises InvalidInput if it could lead to another path."""
    if not text or text in (".", "..") or "/" in text or "%" in text or not text.isprintable():
        raise InvalidInput(f'invalid name {text!r} of a {what}: expected a name without "/" and "%"')
    return quote(text)


def _retry_after(answer: Answer) -> float | None:
    text = "".join(answer.headers.get("retry-after", ())[:1])
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _warning(header: str) -> str:
    """Return the text in `299 - "text"`."""
    text = header.partition(" ")[2].partition(" ")[2]
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if len(text) > 1 and text[0] == '"' else header
