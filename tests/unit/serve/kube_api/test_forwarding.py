"""Forwarding from a node's socket to a server that records its requests."""

import io
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import anyio
import pytest
from aiohttp import web

from devlet.cluster.remote.connection import Connection, Credentials
from devlet.cluster.remote.http import open_transport
from devlet.cluster.remote.settings import Settings
from devlet.errors import DevletError
from devlet.serve.kube_api import answers, server
from devlet.serve.kube_api.forwarding import Forwarder, narrowed
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio

LIST = "/api/v1/pods"


@dataclass
class Upstream:
    """The requests of the server, and its answers."""

    asked: list[web.BaseRequest] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    forbid: bool = False
    next_piece: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        self.bodies.append(await request.read())
        if request.query.get("watch"):
            return await self._watch(request)
        if self.forbid and "nodeName" not in request.query_string:
            return web.json_response({"kind": "Status", "code": 403}, status=403)
        headers = {"Warning": '299 - "old"', "Set-Cookie": "a=b", "Audit-Id": "7"}
        return web.json_response({"path": request.raw_path}, status=201, headers=headers)

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            await response.write(b"first\n")
            await self.next_piece.wait()
            await response.write(b"second\n")
            await anyio.sleep_forever()
        finally:
            self.left.set()
        return response


@asynccontextmanager
async def forwarding(root: Path, upstream: Upstream) -> AsyncIterator[aiohttp.ClientSession]:
    tcp = server.bind_tcp("127.0.0.1", 0)
    url = f"http://127.0.0.1:{tcp.getsockname()[1]}"
    async with (
        server.listening(upstream.handle, tcp, tls=None),
        open_transport(Connection(url, credentials=Credentials(token="secret")), Settings(qps=0)) as transport,
        through(root, Forwarder(transport, "n1")) as session,
    ):
        yield session


@asynccontextmanager
async def through(root: Path, forwarder: Forwarder) -> AsyncIterator[aiohttp.ClientSession]:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await forwarder.forward(request)
        except DevletError as e:
            return answers.error(e)

    path = root / "devlet.sock"
    async with (
        server.listening(handle, server.bind_unix(path), tls=None),
        aiohttp.ClientSession("http://localhost", connector=aiohttp.UnixConnector(str(path))) as session,
    ):
        yield session


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


async def test_a_request_and_its_answer_are_forwarded_unchanged(root: Path, upstream: Upstream) -> None:
    path = "/api/v1/namespaces/a/pods?labelSelector=a%3Db,c%2B%3Dd&limit=5"
    async with forwarding(root, upstream) as session, session.post(path, json={"kind": "Pod"}) as answer:
        assert answer.status == 201
        assert (await answer.json())["path"] == path
    assert upstream.bodies == [b'{"kind": "Pod"}']
    assert upstream.asked[0].headers["Content-Type"] == "application/json"


async def test_only_harmless_headers_pass(root: Path, upstream: Upstream) -> None:
    mine = {"Authorization": "Bearer mine", "Cookie": "c=d", "X-Remote-User": "root", "Accept": "application/yaml"}
    async with forwarding(root, upstream) as session, session.get(LIST, headers=mine) as answer:
        got = upstream.asked[0].headers
        assert got["Accept"] == "application/yaml"
        assert {"X-Remote-User", "Cookie"}.isdisjoint(got)
        assert got.get("Authorization") != "Bearer mine"
        assert (answer.headers["Warning"], answer.headers["Audit-Id"]) == ('299 - "old"', "7")
        assert "Set-Cookie" not in answer.headers


async def test_impersonation_is_refused(root: Path, upstream: Upstream) -> None:
    async with (
        forwarding(root, upstream) as session,
        session.get(LIST, headers={"Impersonate-User": "admin"}) as answer,
    ):
        assert answer.status == 403
        assert "impersonation is not passed on" in (await answer.json())["message"]
    assert upstream.asked == []


@pytest.mark.parametrize(
    "target", ["http://elsewhere/api", "@elsewhere/api", "/api/../x", "/api/%2e%2E/x", "/.", "/api/v1/./pods"]
)
async def test_urls_of_other_hosts_and_paths_with_dots_are_refused(root: Path, upstream: Upstream, target: str) -> None:
    async with forwarding(root, upstream):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(root / "devlet.sock"))
            line.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = await anyio.to_thread.run_sync(line.recv, 4096)
    assert b" 400 " in answer.split(b"\r\n")[0]
    assert upstream.asked == []


async def test_a_request_to_upgrade_the_connection_is_refused(root: Path, upstream: Upstream) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    async with forwarding(root, upstream) as session, session.get(LIST, headers=headers) as answer:
        assert answer.status == 400
    assert upstream.asked == []


async def test_a_body_that_is_too_large_is_not_forwarded(root: Path, upstream: Upstream) -> None:
    async with forwarding(root, upstream) as session, session.post(LIST, data=io.BytesIO(bytes(4 << 20))) as answer:
        assert answer.status == 413
    assert upstream.asked == []


async def test_events_of_a_watch_arrive_one_by_one(root: Path, upstream: Upstream) -> None:
    async with forwarding(root, upstream) as session, session.get(f"{LIST}?watch=true") as answer:
        assert await answer.content.readline() == b"first\n"
        upstream.next_piece.set()
        assert await answer.content.readline() == b"second\n"


async def test_a_client_that_leaves_ends_its_watch_at_the_server(root: Path, upstream: Upstream) -> None:
    async with forwarding(root, upstream) as session:
        async with session.get(f"{LIST}?watch=true") as answer:
            await answer.content.readline()
            answer.close()
        with deadline():
            await upstream.left.wait()


async def test_a_list_that_the_node_may_not_see_is_narrowed_with_a_warning(root: Path, upstream: Upstream) -> None:
    upstream.forbid = True
    async with forwarding(root, upstream) as session, session.get(f"{LIST}?limit=5") as answer:
        assert (await answer.json())["path"] == f"{LIST}?limit=5&fieldSelector=spec.nodeName%3Dn1"
        assert "only objects of node n1" in answer.headers.getall("Warning")[1]


async def test_other_refusals_are_forwarded(root: Path, upstream: Upstream) -> None:
    upstream.forbid = True
    async with forwarding(root, upstream) as session, session.get("/api/v1/secrets") as answer:
        assert answer.status == 403
        assert await answer.json() == {"kind": "Status", "code": 403}


async def test_an_unreachable_server_is_reported(root: Path, upstream: Upstream) -> None:
    connection = Connection("http://127.0.0.1:1")
    async with (
        open_transport(connection, Settings(qps=0)) as transport,
        through(root, Forwarder(transport, "n1")) as session,
        session.get(LIST) as answer,
    ):
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert (await answer.json())["message"].startswith("http://127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("target", "own"),
    [
        ("/api/v1/pods", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"),
        ("/api/v1/namespaces/a/pods?limit=5", "/api/v1/namespaces/a/pods?limit=5&fieldSelector=spec.nodeName%3Dn1"),
        (
            "/api/v1/pods?fieldSelector=status.phase%3DRunning&watch=true",
            "/api/v1/pods?watch=true&fieldSelector=status.phase%3DRunning%2Cspec.nodeName%3Dn1",
        ),
        ("/api/v1/nodes", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1"),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn1",
        ),
    ],
)
def test_a_list_is_narrowed_to_the_nodes_own_objects(target: str, own: str) -> None:
    assert narrowed(target, "n1") == own


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/secrets",
        "/api/v1/namespaces/a/pods/p",
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2",
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/api/v1/nodes/n2",
    ],
)
def test_other_requests_are_not_narrowed(target: str) -> None:
    assert narrowed(target, "n1") is None
