"""HTTP connections: the response to requests that cannot be parsed, and support for `Expect: 100-continue`.

Requests that cannot be parsed never reach a handler. They are refused with a Status, like any other bad request, and
leave one line in the log.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, InvalidURLError, LineTooLong
from aiohttp.web_protocol import RequestHandler

from devlet.kit.facts import facts
from devlet.objects.statuses import failure
from devlet.serve.kube_api.transports import limit_writes

__all__ = ["HEADER_MAX", "HEAD_MAX", "LINE_MAX", "Handle", "Server", "continued"]

log = logging.getLogger(__name__)

LINE_MAX = 32 << 10  # bytes of a request's path and query
HEADER_MAX = 64 << 10  # bytes of one header; must differ from LINE_MAX: `_refusal` compares the limit
HEAD_MAX = 256 << 10  # bytes of a request without its body
_TEXT_MAX = 200  # characters of the request that an answer and the log show

_REASONS = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.REQUEST_URI_TOO_LONG: "RequestURITooLong",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "RequestHeaderFieldsTooLarge",
    HTTPStatus.EXPECTATION_FAILED: "ExpectationFailed",
    HTTPStatus.REQUEST_TIMEOUT: "Timeout",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowed",
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: "HTTPVersionNotSupported",
}
_OTHER_VERSION = "this version of HTTP is not supported, use HTTP/1.1"
_unknown_method = re.compile(r"Invalid method encountered: b'[A-Z][A-Za-z_-]* \S+ HTTP/1\.[01]'").match

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Server(web.Server):
    """A server whose connections are `_Connection`s."""

    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(RequestHandler):
    __slots__ = ("_head",)

    def __init__(self, manager: web.Server, *, loop: asyncio.AbstractEventLoop, **settings: Any) -> None:
        super().__init__(manager, loop=loop, **settings)
        self._head: int | None = 0  # bytes of headers that have not ended; None while a request is handled

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        limit_writes(cast(asyncio.Transport, transport))
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        before = self._request_count
        super().data_received(data)
        if self._request_count > before:
            self._head = None
        elif self._head is not None:
            self._head += len(data)
            if self._head > HEAD_MAX:
                text = f"the headers of the request are longer than {HEAD_MAX} bytes together"
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)

    def answered(self) -> None:
        """Expect the headers of the next request: this one was handled, and all of its body was read."""
        if not self._messages:
            self._head = 0

    def force_close(self) -> None:
        if self._head:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the headers of the request did not arrive in time")
        super().force_close()

    def _refuse(self, code: HTTPStatus, text: str) -> None:
        """Answer a request whose headers have not ended, so that it has no handler."""
        self._head = None
        if self.transport is None or self.transport.is_closing():
            return
        log.info("request refused", extra=facts(code=code.value, err=text))
        body = _body(code, text)
        head = f"HTTP/1.1 {code.value} {code.phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        super().force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse a request that cannot be parsed. Any other error is a bug in devlet and handled by aiohttp."""
        if not isinstance(exc, BadHttpMessage) or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        code, text = _refusal(exc)
        log.info("request refused", extra=facts(code=code.value, err=text))
        answer = _status(code, text)
        answer.force_close()
        return answer


def _refusal(error: BadHttpMessage) -> tuple[HTTPStatus, str]:
    if isinstance(error, LineTooLong):
        if error.args[1] == LINE_MAX:
            return HTTPStatus.REQUEST_URI_TOO_LONG, f"the request's path and query are longer than {LINE_MAX} bytes"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a header is longer than {HEADER_MAX} bytes"
    text = " ".join(error.message.split())[:_TEXT_MAX]
    if "PRI/Upgrade" in text:  # the parser's words for the first bytes of HTTP/2
        return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, _OTHER_VERSION
    if _unknown_method(text):
        return HTTPStatus.METHOD_NOT_ALLOWED, "the server does not allow this method on the requested resource"
    if isinstance(error, InvalidURLError):
        text = f"the target of the request is not valid: {text}"
    return HTTPStatus.BAD_REQUEST, text


def continued(handle: Handle) -> Handle:
    """Wrap a handler so that it sends `100 Continue` to clients that wait for it before they send the body. Requests of
    other versions than HTTP/1 are refused."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if not (1, 0) <= request.version < (2, 0):
            log.info("request refused", extra=facts(code=505, err=_OTHER_VERSION))
            refusal = _status(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, _OTHER_VERSION)
            refusal.force_close()
            return refusal
        expected = request.headers.get("Expect", "") if request.version > (1, 0) else ""
        if expected.lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # the answer itself has not begun
        elif expected:
            text = f"Expect: {expected[:_TEXT_MAX]} is not supported, only 100-continue is"
            log.info("request refused", extra=facts(code=417, err=text))
            return _status(HTTPStatus.EXPECTATION_FAILED, text)
        try:
            return await handle(request)
        finally:
            if isinstance(request.protocol, _Connection) and request.content.is_eof():
                request.protocol.answered()

    return answer


def _status(code: HTTPStatus, text: str) -> web.Response:
    return web.Response(status=code.value, body=_body(code, text), content_type="application/json")


def _body(code: HTTPStatus, text: str) -> bytes:
    return msgspec.json.encode(failure(code.value, _REASONS[code], text))
