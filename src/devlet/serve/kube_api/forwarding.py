"""Forwarding requests to another API server with the node's credentials, and streaming back its answers.

The client can do no more than the node can. Only headers that are known to be harmless pass, in both directions, so
that nothing private to the node's own connection reaches the client. A request for impersonation is refused, not
forwarded without its headers: it would run with rights that the client meant to give up.

Kubernetes lets a node list pods, slices and its Node object only with the field selector that names the node. When a
list is forbidden, it is sent again with that selector, and the answer carries a warning.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlencode

import aiohttp
from aiohttp import web

from devlet.cluster.remote.http import Request, Transport
from devlet.errors import BadRequest, Forbidden
from devlet.serve.kube_api import answers, bodies, long_answers, options
from devlet.serve.kube_api.calls import read_body

__all__ = ["Forwarder", "narrowed"]

_ASKED = ("Accept", "User-Agent", "If-None-Match")
_ANSWERED = ("Content-Type", "Warning", "Retry-After", "ETag", "Vary", "Cache-Control", "Audit-Id")


# The lists that a node may see if it selects itself, and the field of the selector.
_OWN = (
    (re.compile(r"/api/v1(/namespaces/[^/]+)?/pods"), "spec.nodeName"),
    (re.compile(r"/api/v1/nodes"), "metadata.name"),
    (re.compile(r"/apis/resource\.k8s\.io/[^/]+/resourceslices"), "spec.nodeName"),
)


class Forwarder:
    """Forwards requests with the credentials of `node`, which are in `transport`."""

    def __init__(self, transport: Transport, node: str) -> None:
        self._transport = transport
        self._node = node

    async def forward(self, request: web.BaseRequest) -> web.StreamResponse:
        """Return the server's answer, whatever it is. Raise Unavailable if the server does not answer."""
        _check(request)
        body = await read_body(request) if request.can_read_body else None
        content_type = request.headers.get("Content-Type", bodies.JSON)
        asked = Request(request.method, request.raw_path, body=body, content_type=content_type)
        own = narrowed(asked.path, self._node) if request.method == "GET" else None
        async with self._sent(request, asked) as answer:
            if answer.status != HTTPStatus.FORBIDDEN or own is None:
                return await _pass_on(request, answer)
        async with self._sent(request, replace(asked, path=own)) as answer:
            return await _pass_on(request, answer, answers.warning(_warning(self._node)))

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
        long_answers.cut_off(request)  # half an answer must not look like a whole one
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


def narrowed(target: str, node: str) -> str | None:
    """Return the same path and query with a selector for the node's own objects. Return None if there is no such
    selector, or the query has it already."""
    path, _, query = target.partition("?")
    field = next((field for pattern, field in _OWN if pattern.fullmatch(path)), None)
    pairs = parse_qsl(query, keep_blank_values=True)
    given = ",".join(value for key, value in pairs if key == "fieldSelector" and value)
    if field is None or f"{field}=" in given:
        return None
    selector = f"{given},{field}={node}" if given else f"{field}={node}"
    rest = [pair for pair in pairs if pair[0] != "fieldSelector"]
    return f"{path}?{urlencode([*rest, ('fieldSelector', selector)])}"


def _warning(node: str) -> str:
    return f"only objects of node {node} are shown: the node may not see more of the cluster"
