from typing import Any

import pytest
from aiohttp import web

from devlet.cluster.remote.client import connected
from devlet.cluster.remote.connection import Connection
from devlet.errors import DevletError, NotFound
from devlet.objects.kinds import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_POOL_STATUS_REQUESTS

pytestmark = pytest.mark.anyio

ANSWERS: dict[str, Any] = {
    "/version": {"major": "1", "gitVersion": "v1.36.4"},
    "/api": {"versions": ["v1"]},
    "/apis": {"groups": [{"name": "resource.k8s.io", "versions": [{"groupVersion": "resource.k8s.io/v1beta1"}]}]},
    "/api/v1": {"resources": [{"name": "pods"}, {"name": "pods/status"}]},
    "/apis/resource.k8s.io/v1beta2": {"resources": [{"name": "resourceclaims"}]},
    "/apis/resource.k8s.io/v1alpha3": {"resources": [{"name": "devicetaintrules"}]},
}


async def answer(request: web.BaseRequest) -> web.Response:
    if request.path not in ANSWERS:
        return web.Response(status=404, text="404 page not found")
    return web.json_response(ANSWERS[request.path])


async def test_the_server_says_what_it_is(serve: Any) -> None:
    async with connected(Connection(await serve(answer))) as cluster:
        assert await cluster.discovery.server_version() == "v1.36.4"
        assert await cluster.discovery.api_versions() == {"v1", "resource.k8s.io/v1beta1"}
        assert await cluster.discovery.resources("v1") == {"pods", "pods/status"}
        assert await cluster.discovery.resources("example.com/v1") == frozenset()


async def test_a_kind_is_found_in_its_first_version_that_has_it(serve: Any) -> None:
    async with connected(Connection(await serve(answer))) as cluster:
        found = [await cluster.discovery.resource_of(r.kind) for r in (PODS, RESOURCE_CLAIMS, DEVICE_TAINT_RULES)]
        versions = [resource.api_version for resource in found]
        assert versions == ["v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3"]
        with pytest.raises(NotFound, match=r"resourcepoolstatusrequests in none of resource\.k8s\.io/v1alpha3"):
            await cluster.discovery.resource_of(RESOURCE_POOL_STATUS_REQUESTS.kind)


async def test_a_server_that_is_not_an_api_server_is_noticed(serve: Any) -> None:
    async def page(request: web.BaseRequest) -> web.Response:
        return web.Response(text="<html>")

    url = await serve(page)
    async with connected(Connection(url)) as cluster:
        with pytest.raises(DevletError, match=f"{url}/version: unexpected answer"):
            await cluster.discovery.server_version()
