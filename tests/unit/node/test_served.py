"""Servers answer as Kubernetes does: a version that is not served is a page that is not found."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from devlet.cluster.remote.client import RemoteCluster, connected
from devlet.cluster.remote.connection import Connection
from devlet.errors import NotFound, Unavailable
from devlet.node.served import Served
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS, Resource
from devlet.objects.statuses import failure

pytestmark = pytest.mark.anyio

V1, V1BETA2, V1BETA1 = (f"resource.k8s.io/{version}" for version in ("v1", "v1beta2", "v1beta1"))


class OldServer:
    """Serves these versions. For others it answers that there is no such page, or no such resource in a group."""

    def __init__(self, *served: str) -> None:
        self.served = served
        self.knows_group = False
        self.asked: list[str] = []

    async def answer(self, request: web.BaseRequest) -> web.Response:
        version = request.path.removeprefix("/apis/").partition("/namespaces/")[0]
        self.asked.append(version)
        if version not in self.served:
            if self.knows_group:
                text = "the server could not find the requested resource"
                return web.json_response(failure(404, "NotFound", text, {}), status=404)
            return web.Response(status=404, text="404 page not found\n")
        name = request.path.rpartition("/")[2]
        if name != "gpu":
            details = {"name": name, "group": "resource.k8s.io", "kind": "resourceclaims"}
            text = f'resourceclaims.resource.k8s.io "{name}" not found'
            return web.json_response(failure(404, "NotFound", text, details), status=404)
        return web.json_response({"apiVersion": version, "kind": "ResourceClaim", "metadata": {"name": name}})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[RemoteCluster]:
        runner = web.ServerRunner(web.Server(self.answer, access_log=None), shutdown_timeout=0.01)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            async with connected(Connection(f"http://127.0.0.1:{runner.addresses[0][1]}")) as cluster:
                yield cluster
        finally:
            await runner.cleanup()


async def get(served: Served, cluster: RemoteCluster, name: str = "gpu") -> Document:
    return await served.ask(lambda claims: cluster.get(claims, name, "default"))


@pytest.mark.parametrize("knows_group", [False, True])
async def test_versions_are_tried_from_the_newest_and_the_one_that_is_served_is_remembered(knows_group: bool) -> None:
    server, served = OldServer(V1BETA1), Served(RESOURCE_CLAIMS.kind)
    server.knows_group = knows_group
    async with server.running() as cluster:
        assert (await get(served, cluster))["apiVersion"] == V1BETA1
        assert server.asked == [V1, V1BETA2, V1BETA1]
        await get(served, cluster)
        assert server.asked == [V1, V1BETA2, V1BETA1, V1BETA1]
    assert served.resource == Resource(RESOURCE_CLAIMS.kind, V1BETA1)


async def test_no_other_version_is_tried_for_a_missing_object() -> None:
    server, served = OldServer(V1, V1BETA2, V1BETA1), Served(RESOURCE_CLAIMS.kind)
    async with server.running() as cluster:
        with pytest.raises(NotFound, match='"nic" not found'):
            await get(served, cluster, "nic")
    assert server.asked == [V1]


async def test_a_version_that_is_no_longer_served_is_replaced_by_one_that_is() -> None:
    server, served = OldServer(V1BETA1), Served(RESOURCE_CLAIMS.kind)
    async with server.running() as cluster:
        await get(served, cluster)
        server.served = (V1,)
        assert (await get(served, cluster))["apiVersion"] == V1
        assert server.asked[3:] == [V1BETA1, V1]


async def test_a_missing_kind_is_distinguished_from_a_missing_object() -> None:
    served = Served(RESOURCE_CLAIMS.kind)
    async with OldServer().running() as cluster:
        with pytest.raises(NotFound, match=r"serves resourceclaims in none of resource\.k8s\.io/v1, ") as caught:
            await get(served, cluster)
    assert caught.value.name == ""


async def test_other_errors_are_raised() -> None:
    served = Served(RESOURCE_CLAIMS.kind)

    async def down(resource: Resource) -> Document:
        raise Unavailable("later")

    with pytest.raises(Unavailable, match="later"):
        await served.ask(down)
    assert served.resource == RESOURCE_CLAIMS
