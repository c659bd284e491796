from typing import TYPE_CHECKING

import pytest

from devlet.kit.metrics import Registry
from devlet.objects.release import KUBERNETES
from devlet.serve.kube_api.endpoints import version_info
from devlet.serve.kube_api.health import Check
from devlet.serve.kube_api.openapi_protobuf import MEDIA_TYPE, MEDIA_TYPES

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Serve, Served

pytestmark = pytest.mark.anyio
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_the_version_is_that_of_kubernetes() -> None:
    info = version_info()
    assert (info["gitVersion"], info["major"], info["minor"]) == (KUBERNETES, "1", "36")


async def test_discovery_has_both_forms(served: "Served") -> None:
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


async def test_health_is_verbose_on_request(served: "Served") -> None:
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


async def test_openapi_2_has_a_protobuf_form_with_a_tag_of_its_own(served: "Served") -> None:
    await served.request("GET", "/openapi/v2")
    json_tag = served.headers["ETag"]
    asked = {"Accept": MEDIA_TYPES[-1]}
    assert (await served.request("HEAD", "/openapi/v2", headers=asked))[0] == 200
    assert served.headers["Content-Type"] == MEDIA_TYPE
    tag = served.headers["ETag"]
    assert tag != json_tag
    assert (await served.request("GET", "/openapi/v2", headers={**asked, "If-None-Match": tag}))[0] == 304
    code, refusal = await served.request("GET", "/openapi/v2", headers={"Accept": "text/html"})
    assert (code, refusal["reason"]) == (406, "NotAcceptable")


async def test_a_check_of_the_node_is_part_of_its_health(serve: "Serve") -> None:
    problems: list[str | None] = [None]
    async with serve(checks=[Check("device-plugin", lambda: problems[-1])]) as served:
        assert "[+]device-plugin ok\n" in (await served.request("GET", "/healthz?verbose"))[1]
        assert await served.request("GET", "/healthz/device-plugin") == (200, "ok")
        problems.append("device registration error: the socket is gone")
        for endpoint in ("healthz", "livez", "readyz"):
            code, text = await served.request("GET", f"/{endpoint}", token="")
            assert (code, "[-]device-plugin failed: reason withheld\n" in text) == (500, True)
        assert (await served.request("GET", "/healthz?exclude=device-plugin"))[0] == 200
        code, text = await served.request("GET", "/healthz/device-plugin")
        assert (code, text) == (500, "internal server error: device registration error: the socket is gone\n")
        problems.append(None)
        assert await served.request("GET", "/healthz") == (200, "ok")


async def test_metrics_require_a_permission(serve: "Serve") -> None:
    registry = Registry()
    registry.counter("c_total", "C.").add()
    async with serve(metrics=registry) as served:
        code, text = await served.request("GET", "/metrics")
        assert (code, text.partition("# HELP devlet_")[0]) == (
            200,
            "# HELP c_total C.\n# TYPE c_total counter\nc_total 1\n",
        )
        assert served.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert (await served.request("GET", "/metrics", token=""))[0] in (401, 403)
        assert (await served.request("GET", "/metrics", headers={"Impersonate-User": "bob"}))[0] == 403
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        await served.request("POST", f"{rbac}/clusterroles", json={"metadata": {"name": "scrape"}, "rules": rules})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scrape"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}
        binding = {"metadata": {"name": "scrape"}, "roleRef": reference, "subjects": [subject]}
        await served.request("POST", f"{rbac}/clusterrolebindings", json=binding)
        assert (await served.request("GET", "/metrics", headers={"Impersonate-User": "bob"}))[0] == 200


async def test_without_metrics_there_is_no_such_path(served: "Served") -> None:
    assert await served.request("GET", "/metrics") == (404, "404 page not found\n")
