"""The document of OpenAPI 2."""

import json
from typing import Any

import pytest

from devlet.objects.kinds import BUILT_IN, Catalogue, Kind
from devlet.serve.kube_api.openapi_protobuf import MEDIA_TYPE, encode
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


@pytest.mark.parametrize("media_type", ["application/json", MEDIA_TYPE])
def test_the_document_is_built_again_only_after_a_change(media_type: str) -> None:
    catalogue = Catalogue(BUILT_IN)
    openapi = OpenAPIV2(catalogue)
    before = openapi.document(media_type)
    assert openapi.document(media_type) is before
    catalogue.add(ROBOT)
    assert openapi.document(media_type).hash != before.hash


def test_json_and_protobuf_have_the_same_content_and_different_hashes() -> None:
    openapi = OpenAPIV2(Catalogue(BUILT_IN))
    json_form, protobuf_form = openapi.document(), openapi.document(MEDIA_TYPE)
    assert protobuf_form.body == encode(made(openapi))
    assert protobuf_form.hash != json_form.hash
    assert openapi.document() is json_form
