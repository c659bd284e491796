"""HTTP connections: the response to requests that cannot be parsed, and support for `Expect: 100-continue`.

Requests that cannot be parsed never reach a handler. They are refused with a Status, like any other bad request, and
leave one line in the log.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, InvalidURLError, LineTooLong
from aiohttp.web_protocol import RequestHandler

from devlet.kit.facts import facts
from devlet.objects.statuses import failure
from devlet.serve.kube_api.transports import limit_writes

__all__ = ["HEADER_MAX", "LINE_MAX", "Handle", "Server", "continued"]

log = logging.getLogger(__name__)

LINE_MAX = 32 << 10  # bytes of a request's path and query
HEADER_MAX = 64 << 10  # bytes of one header; must differ from LINE_MAX: `_refusal` compares the limit
_TEXT_MAX = 200  # characters of the request that an answer and the log show

_REASONS = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.REQUEST_URI_TOO_LONG: "RequestURITooLong",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "RequestHeaderFieldsTooLarge",
    HTTPStatus.EXPECTATION_FAILED: "ExpectationFailed",
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
    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        limit_writes(cast(asyncio.Transport, transport))
        super().connection_made(transport)

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
        return await handle(request)

    return answer


def _status(code: HTTPStatus, text: str) -> web.Response:
    body = msgspec.json.encode(failure(code.value, _REASONS[code], text))
    return web.Response(status=code.value, body=body, content_type="application/json")
