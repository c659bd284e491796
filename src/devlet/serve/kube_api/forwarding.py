"""Requests that go on to another API server, with our credentials, and its answers, as they come.

Whoever asks can do no more than we can, and gets nothing that is between the server and us: of the headers only those
that are known to be harmless pass, in both directions. Who wants to be somebody else is refused, not ignored: they
would act with rights that they meant to give up.
"""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import unquote

import aiohttp
from aiohttp import web

from devlet.cluster.remote.http import Request, Transport
from devlet.errors import BadRequest, Forbidden
from devlet.serve.kube_api import answers, bodies, long_answers, options
from devlet.serve.kube_api.calls import read_body
from devlet.serve.kube_api.narrowing import narrowed, warning

__all__ = ["Forwarder"]

_ASKED = ("Accept", "User-Agent", "If-None-Match")
_ANSWERED = ("Content-Type", "Warning", "Retry-After", "ETag", "Vary", "Cache-Control", "Audit-Id")


class Forwarder:
    """`node` is the one whose credentials these are. A list that it may not see is narrowed to what is on it, with a
    warning."""

    def __init__(self, transport: Transport, node: str) -> None:
        self._transport = transport
        self._node = node

    async def forward(self, request: web.BaseRequest) -> web.StreamResponse:
        """Unavailable if the server does not answer; else its answer, whatever that is."""
        _check(request)
        body = await read_body(request) if request.can_read_body else None
        content_type = request.headers.get("Content-Type", bodies.JSON)
        asked = Request(request.method, request.raw_path, body=body, content_type=content_type)
        own = narrowed(asked.path, self._node) if request.method == "GET" else None
        async with self._sent(request, asked) as answer:
            if answer.status != HTTPStatus.FORBIDDEN or own is None:
                return await _pass_on(request, answer)
        async with self._sent(request, replace(asked, path=own)) as answer:
            return await _pass_on(request, answer, answers.warning(warning(self._node)))

    def _sent(self, request: web.BaseRequest, asked: Request) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        streams = options.is_watch(request.query)
        return self._transport.exchange(asked, list(_headers(request)), streams=streams)


async def _pass_on(request: web.BaseRequest, answer: aiohttp.ClientResponse, warning: str = "") -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason)
    for name in _ANSWERED:
        for value in answer.headers.getall(name, ()):
            response.headers.add(name, value)
    if warning and answer.status < HTTPStatus.BAD_REQUEST:
        response.headers.add("Warning", warning)
    try:
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await long_answers.write(request, response, chunk)
        await response.write_eof()
    except (ConnectionError, aiohttp.ClientError, TimeoutError):
        long_answers.cut_off(request)  # who reads half an answer must not take it for a whole one
    return response


def _check(request: web.BaseRequest) -> None:
    path = request.raw_path.partition("?")[0]
    if not path.startswith("/") or any(unquote(part) in (".", "..") for part in path.split("/")):
        raise BadRequest(f"{path[:80]!r} is not a path of an API server")
    if any(name.lower().startswith("impersonate-") for name in request.headers):
        raise Forbidden("forbidden: impersonation is not passed on to the cluster of this node")
    if "upgrade" in request.headers.get("Connection", "").lower():
        raise BadRequest("connections that change their protocol (exec, attach, port-forward) are not passed on")


def _headers(request: web.BaseRequest) -> Iterator[tuple[str, str]]:
    yield "Accept-Encoding", "identity"  # a local socket is fast enough
    for name in _ASKED:
        for value in request.headers.getall(name, ()):
            yield name, value
