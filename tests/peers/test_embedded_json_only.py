"""kube-scheduler, told to speak JSON, needs no server that reads protobuf: between it and devlet stands a proxy that
refuses protobuf, as a server without it would."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientSession, web

from devlet.auth import certificates, kubeconfigs
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.objects.kinds import PODS
from devlet.serve.kube_api import server
from devlet.testing.embedded import EmbeddedApi, embedded_api
from devlet.testing.waiting import until
from tests.support.cluster_contract.specimens import pod
from tests.support.peers.kube_programs import kube_scheduler

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

PROTOBUF = "application/vnd.kubernetes.protobuf"
HOP_BY_HOP = ("connection", "content-length", "host", "transfer-encoding")
Refusals = list[tuple[str, str]]


@asynccontextmanager
async def without_protobuf(api: EmbeddedApi) -> AsyncIterator[tuple[Path, Refusals]]:
    """A kubeconfig for a way to the API on which protobuf bodies are refused, and those that were."""
    refused: Refusals = []
    pki = certificates.open_pki(api.root / "pki", certificates.server_names(["127.0.0.1"]), datetime.now(UTC))
    address = server.bind_tcp("127.0.0.1", 0)
    config = kubeconfigs.read(api.kubeconfig)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{address.getsockname()[1]}"
    path = api.root / "json-only.kubeconfig"
    kubeconfigs.write(path, config)
    async with ClientSession(base_url=api.endpoint, auto_decompress=False) as session:
        handle = partial(_forward, session, _trust(api), refused)
        async with server.listening(handle, address, tls=certificates.server_context(pki)):
            yield path, refused


def _trust(api: EmbeddedApi) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=api.ca_file)


async def _forward(
    session: ClientSession, tls: ssl.SSLContext, refused: Refusals, request: web.BaseRequest
) -> web.StreamResponse:
    if request.headers.get("Content-Type", "").startswith(PROTOBUF):
        refused.append((request.method, request.path))
        return web.Response(status=415)
    headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
    body = await request.read()
    async with session.request(request.method, request.path_qs, headers=headers, data=body, ssl=tls) as upstream:
        kept = {name: value for name, value in upstream.headers.items() if name.lower() not in HOP_BY_HOP}
        response = web.StreamResponse(status=upstream.status, headers=kept)
        await response.prepare(request)
        async for chunk in upstream.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
    return response


@pytest.mark.spec("KA-10.90")
async def test_the_scheduler_schedules_without_a_single_protobuf_body(peers: "Peers", root: Path) -> None:
    peers.need("kubectl", "kube-scheduler")
    as_json = ["--kube-api-content-type=application/json"]
    async with (
        embedded_api(root, binaries=peers.binaries, arguments=["--node-name=n1"]) as api,
        connected(kubeconfig.connection([api.kubeconfig])) as cluster,
        without_protobuf(api) as (path, refused),
        kube_scheduler(peers.binaries, root / "peers", path, flags=as_json),
    ):
        await cluster.create(PODS, pod("p1"), "default")
        bound = await until(partial(cluster.get, PODS, "p1", "default"), lambda pod: bool(pod["spec"].get("nodeName")))
    assert bound["spec"]["nodeName"] == "n1"
    assert refused == []
