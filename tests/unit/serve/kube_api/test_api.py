"""Requests over HTTPS: authorization, refusals and their texts."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio


async def test_every_user_may_read_version_and_health(served: "Served") -> None:
    for path in ("/version", "/healthz", "/livez", "/readyz"):
        assert (await served.request("GET", path, token=""))[0] == 200


async def test_listing_objects_requires_credentials(served: "Served") -> None:
    code, status = await served.request("GET", "/api/v1/namespaces/default/configmaps", token="")
    assert (code, status["reason"]) == (403, "Forbidden")
    assert status["message"] == (
        'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps"'
        ' in API group "" in the namespace "default"'
    )


async def test_a_wrong_token_is_unauthorized(served: "Served") -> None:
    code, status = await served.request("GET", "/api/v1/pods", token="nonsense")
    assert (code, status["reason"], status["message"]) == (401, "Unauthorized", "Unauthorized")


async def test_unknown_resources_and_paths_are_not_found(served: "Served") -> None:
    code, status = await served.request("GET", "/api/v1/foos")
    assert (code, status["message"]) == (404, "the server could not find the requested resource")
    assert await served.request("GET", "/apis/nope/v9/x") == (404, {**status})
    assert await served.request("GET", "/nope") == (404, "404 page not found\n")


async def test_unsupported_methods_are_not_allowed(served: "Served") -> None:
    for method, path in (
        ("PUT", "/api/v1/nodes"),
        ("POST", "/api/v1/nodes/n"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/version"),
    ):
        code, status = await served.request(method, path, data=b"{}")
        assert (code, status["reason"]) == (405, "MethodNotAllowed")


async def test_unsupported_media_types_are_not_acceptable(served: "Served") -> None:
    code, status = await served.request("GET", "/api/v1/nodes", headers={"Accept": "text/html"})
    assert (code, status["reason"]) == (406, "NotAcceptable")
    assert "application/json" in status["message"]


async def test_a_name_with_an_encoded_nul_is_not_found(served: "Served") -> None:
    code, status = await served.request("GET", "/api/v1/nodes/a%00b")
    assert (code, status["reason"]) == (404, "NotFound")


async def test_a_subresource_that_a_kind_does_not_have_is_not_found(served: "Served") -> None:
    assert (await served.request("GET", "/api/v1/namespaces/default/configmaps/a/status"))[0] == 404
