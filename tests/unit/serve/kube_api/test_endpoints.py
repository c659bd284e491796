from typing import TYPE_CHECKING

import pytest

from devlet.objects.release import KUBERNETES
from devlet.serve.kube_api.endpoints import version_info

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_the_version_is_the_one_clients_expect() -> None:
    info = version_info()
    assert (info["gitVersion"], info["major"], info["minor"]) == (KUBERNETES, "1", "36")


async def test_discovery_is_there_in_both_forms(served: "Served") -> None:
    _, versions = await served.request("GET", "/api")
    assert versions["versions"] == ["v1"]
    _, groups = await served.request("GET", "/apis")
    assert "resource.k8s.io" in [group["name"] for group in groups["groups"]]
    _, one = await served.request("GET", "/apis/resource.k8s.io")
    assert one["preferredVersion"]["version"] == "v1"
    _, resources = await served.request("GET", "/apis/resource.k8s.io/v1")
    assert "resourceclaims/status" in [resource["name"] for resource in resources["resources"]]
    await served.request("GET", "/apis", headers={"Accept": AGGREGATED})
    assert served.headers["Content-Type"] == AGGREGATED


async def test_groups_that_do_not_exist_are_plain_text_404(served: "Served") -> None:
    for path in ("/apis/nope", "/apis/nope/v1", "/api/v7", "/openapi/v3/apis/nope/v1"):
        assert await served.request("GET", path) == (404, "404 page not found\n")


async def test_health_tells_more_when_asked(served: "Served") -> None:
    assert await served.request("GET", "/readyz") == (200, "ok")
    assert (await served.request("GET", "/readyz?verbose"))[1].endswith("readyz check passed\n")
    assert await served.request("GET", "/readyz/ping") == (200, "ok")
    assert await served.request("GET", "/readyz/nosuch") == (404, "404 page not found\n")


async def test_openapi_is_cacheable(served: "Served") -> None:
    _, index = await served.request("GET", "/openapi/v3")
    path = index["paths"]["apis/resource.k8s.io/v1"]["serverRelativeURL"]
    code, document = await served.request("GET", path)
    assert (code, document["openapi"][:2]) == (200, "3.")
    tag = served.headers["ETag"]
    assert (await served.request("GET", path, headers={"If-None-Match": tag}))[0] == 304
    assert (await served.request("GET", "/openapi/v2"))[1]["swagger"] == "2.0"
