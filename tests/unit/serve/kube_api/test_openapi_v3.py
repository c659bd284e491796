"""The index and the documents of OpenAPI 3."""

import json
from typing import Any

import pytest

from devlet.objects.kinds import BUILT_IN, Catalogue, Kind
from devlet.serve.kube_api.openapi_v3 import OpenAPIV3

ROBOT = Kind("Robot", "robots", ("example.com/v1",))

pytestmark = pytest.mark.spec("KA-1.5")


def document(openapi: OpenAPIV3, path: str) -> dict[str, Any]:
    rendered = openapi.document(path)
    assert rendered is not None
    found: dict[str, Any] = json.loads(rendered.body)
    return found


def test_the_index_refers_to_every_document() -> None:
    openapi = OpenAPIV3(Catalogue(BUILT_IN))
    paths = json.loads(openapi.index().body)["paths"]
    assert {"api/v1", "apis/resource.k8s.io/v1", "apis/authorization.k8s.io/v1"} <= paths.keys()
    for path, entry in paths.items():
        rendered = openapi.document(path)
        assert rendered is not None
        assert entry["serverRelativeURL"] == f"/openapi/v3/{path}?hash={rendered.hash}"


def test_a_document_lists_the_patch_operation_of_a_kind() -> None:
    found = document(OpenAPIV3(Catalogue(BUILT_IN)), "api/v1")
    patch = found["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert patch["x-kubernetes-action"] == "patch"
    validation = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    assert validation in patch["parameters"]
    assert "application/apply-patch+yaml" in patch["requestBody"]["content"]


def test_every_reference_of_every_document_leads_somewhere() -> None:
    openapi = OpenAPIV3(Catalogue([*BUILT_IN, ROBOT]))
    for path in json.loads(openapi.index().body)["paths"]:
        found = document(openapi, path)
        schemas = found["components"]["schemas"]
        targets = {name.rpartition("/")[2] for name in _references(found)}
        assert targets <= schemas.keys()


def _references(value: Any) -> set[str]:
    if isinstance(value, list):
        return {name for item in value for name in _references(item)}
    if not isinstance(value, dict):
        return set()
    below = {name for member in value.values() for name in _references(member)}
    return below | ({value["$ref"]} if isinstance(value.get("$ref"), str) else set())


@pytest.mark.parametrize("path", ["", "api", "api/v2", "apis", "apis/apps", "apis/nothing.io/v1", "apis/a/b/c", "v1"])
def test_other_paths_have_no_document(path: str) -> None:
    assert OpenAPIV3(Catalogue(BUILT_IN)).document(path) is None


def test_a_document_is_built_again_only_when_its_kinds_change() -> None:
    catalogue = Catalogue([*BUILT_IN, ROBOT])
    words = ["two"]
    openapi = OpenAPIV3(catalogue, lambda api_version, kind: {"type": "object", "description": words[0]})
    core, robots = openapi.document("api/v1"), openapi.document("apis/example.com/v1")
    index = openapi.index()
    assert openapi.document("api/v1") is core
    words[0] = "three"
    changed = openapi.document("apis/example.com/v1")
    assert changed is not None and robots is not None
    assert changed.hash != robots.hash
    assert openapi.index().hash != index.hash
    assert openapi.document("api/v1") is core
    catalogue.remove(ROBOT)
    assert openapi.document("apis/example.com/v1") is None
    assert "apis/example.com/v1" not in json.loads(openapi.index().body)["paths"]


def test_fields_have_descriptions() -> None:
    found = document(OpenAPIV3(Catalogue(BUILT_IN)), "apis/resource.k8s.io/v1beta1")
    spec = found["components"]["schemas"]["io.k8s.api.resource.v1beta1.ResourceSliceSpec"]
    assert spec["properties"]["driver"]["description"]
