"""Which requests the node answers, and which it forwards. test_forwarding tests how."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from devlet.cluster.remote.connection import Connection
from devlet.cluster.remote.http import open_transport
from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.objects.documents import Document
from devlet.serve.kube_api import joined_api, server
from devlet.serve.kube_api.endpoints import Endpoints
from devlet.serve.kube_api.forwarding import Forwarder
from devlet.serve.kube_api.joined_api import JoinedApi
from devlet.serve.kube_api.node_views import NodeViews
from devlet.serve.kube_api.paths import VIEWS

pytestmark = pytest.mark.anyio

DEVICE = {
    "kind": "Device",
    "apiVersion": "devlet.dev/v1alpha1",
    "metadata": {"name": "gpu-0"},
    "spec": {"id": "0", "resource": "vendor.com/gpu"},
    "status": {"health": "Healthy"},
}


class Views:
    def devices(self) -> Sequence[Document]:
        return [DEVICE]

    def plugins(self) -> Sequence[Document]:
        raise KeyError("a bug")

    async def holders(self) -> Sequence[Document]:
        return []

    async def drivers(self) -> Sequence[Document]:
        return []

    def prepared_claims(self) -> Sequence[Document]:
        return []

    async def release_claim(self, namespace: str, name: str, *, force: bool) -> None:
        raise KeyError("a bug")


async def upstream(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text=f"upstream {request.path}")


@pytest.fixture
async def session(root: Path, anyio_backend: str) -> AsyncIterator[aiohttp.ClientSession]:
    tcp = server.bind_tcp("127.0.0.1", 0)
    url = f"http://127.0.0.1:{tcp.getsockname()[1]}"
    metrics = Registry()
    metrics.counter("things_total", "Things.").add()
    endpoints = Endpoints(VIEWS, "", metrics=metrics)
    async with server.listening(upstream, tcp, tls=None), open_transport(Connection(url)) as transport:
        api = JoinedApi(NodeViews(Views()), endpoints, Forwarder(transport, "n1"), SystemClock())
        async with listening(api, root / "devlet.sock") as session:
            yield session


@asynccontextmanager
async def listening(api: JoinedApi, path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with (
        server.listening(api.handle, server.bind_unix(path), tls=None),
        aiohttp.ClientSession("http://localhost", connector=aiohttp.UnixConnector(str(path))) as session,
    ):
        yield session


async def text(session: aiohttp.ClientSession, path: str) -> str:
    async with session.get(path) as answer:
        return await answer.text()


async def code(session: aiohttp.ClientSession, path: str, method: str = "GET") -> int:
    async with session.request(method, path) as answer:
        return answer.status


@pytest.mark.parametrize("path", ["/api", "/apis", "/version", "/openapi/v2", "/api/v1/pods", "/apis/devlet.dev.x/v1"])
async def test_other_requests_are_forwarded(session: aiohttp.ClientSession, path: str) -> None:
    assert await text(session, path) == f"upstream {path}"


async def test_views_are_those_of_the_node(session: aiohttp.ClientSession) -> None:
    assert '"gpu-0"' in await text(session, "/apis/devlet.dev/v1alpha1/devices")
    assert '"gpu-0"' in await text(session, "/apis/devlet.dev/v1alpha1/devices/gpu-0")
    assert '"devices"' in await text(session, "/apis/devlet.dev/v1alpha1")
    assert await code(session, "/apis/devlet.dev/v1alpha1/devices/gone") == 404
    assert await code(session, "/apis/devlet.dev/v1alpha1/devices/gpu-0", "DELETE") == 405
    assert await code(session, "/apis/devlet.dev/v1alpha1/devices/gpu-0/status") == 404
    assert await code(session, "/apis/devlet.dev/v1alpha1/pods") == 404


async def test_health_and_metrics_are_those_of_the_node(session: aiohttp.ClientSession) -> None:
    assert await text(session, "/healthz") == "ok"
    assert await text(session, "/readyz") == "ok"
    assert "things_total 1" in await text(session, "/metrics")


async def test_a_bug_is_answered_with_500(session: aiohttp.ClientSession) -> None:
    assert await code(session, "/apis/devlet.dev/v1alpha1/plugins") == 500
    assert await text(session, "/api") == "upstream /api"


async def test_other_users_are_refused(session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_api, "peer_uid", lambda _: os.getuid() + 1)
    for path in ("/api/v1/pods", "/apis/devlet.dev/v1alpha1/devices", "/healthz"):
        assert await code(session, path) == 403
