"""The document of OpenAPI 2."""

import json
from typing import Any

from devlet.objects.kinds import BUILT_IN, Catalogue, Kind
from devlet.serve.kube_api.openapi_v2 import OpenAPIV2

ROBOT = Kind("Robot", "robots", ("example.com/v1",))


def made(openapi: OpenAPIV2) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(openapi.document().body)
    return found


def test_everything_is_in_one_document() -> None:
    found = made(OpenAPIV2(Catalogue([*BUILT_IN, ROBOT])))
    assert found["swagger"] == "2.0"
    assert {"/api/v1/nodes/{name}", "/apis/example.com/v1/robots"} <= found["paths"].keys()
    assert {"io.k8s.api.resource.v1.ResourceClaim", "com.example.v1.Robot"} <= found["definitions"].keys()


def test_a_body_is_a_parameter() -> None:
    create = made(OpenAPIV2(Catalogue(BUILT_IN)))["paths"]["/api/v1/nodes"]["post"]
    body = {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.Node"}}
    assert body in create["parameters"]
    assert {"name": "dryRun", "in": "query", "type": "string"} in create["parameters"]


def test_it_is_made_again_only_when_something_has_changed() -> None:
    catalogue = Catalogue(BUILT_IN)
    openapi = OpenAPIV2(catalogue)
    before = openapi.document()
    assert openapi.document() is before
    catalogue.add(ROBOT)
    assert openapi.document().hash != before.hash
