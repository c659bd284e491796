"""Schemas of custom resources and of the node's views."""

import json
from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.objects.kinds import Catalogue, Kind, Resource
from devlet.serve.kube_api.openapi_custom import custom_components, with_views
from devlet.serve.kube_api.openapi_schemas import V2, V3
from devlet.serve.kube_api.openapi_v3 import OpenAPIV3
from devlet.serve.kube_api.paths import VIEWS, WithViews

ROBOTS = Resource(Kind("Robot", "robots", ("example.com/v1",)), "example.com/v1")
DECLARED: dict[str, Any] = {
    "type": "object",
    "description": "A machine.",
    "properties": {
        "spec": {"type": "object", "nullable": True, "properties": {"arms": {"anyOf": [{"type": "integer"}]}}}
    },
}


def test_the_schema_of_a_definition_is_extended_by_the_common_fields() -> None:
    found = custom_components(V3, ROBOTS, DECLARED)["com.example.v1.Robot"]
    assert found["description"] == "A machine."
    assert found["properties"]["spec"] == DECLARED["properties"]["spec"]
    assert found["properties"].keys() == {"spec", "apiVersion", "kind", "metadata"}
    wanted = [{"group": "example.com", "version": "v1", "kind": "Robot"}]
    assert found["x-kubernetes-group-version-kind"] == wanted
    assert "metadata" not in DECLARED["properties"]


def test_the_list_of_a_custom_resource_has_a_schema() -> None:
    found = custom_components(V3, ROBOTS, None)["com.example.v1.RobotList"]
    target = {"allOf": [{"$ref": "#/components/schemas/com.example.v1.Robot"}]}
    assert found["properties"]["items"] == {"type": "array", "items": target}


def test_without_a_schema_every_field_is_allowed() -> None:
    found = custom_components(V3, ROBOTS, None)["com.example.v1.Robot"]
    assert found["x-kubernetes-preserve-unknown-fields"] is True


def in_version_2(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a property of the spec."""
    declared = {"properties": {"spec": {"properties": {"it": schema}}}}
    found: dict[str, Any] = custom_components(V2, ROBOTS, declared)["com.example.v1.Robot"]
    spec: dict[str, Any] = found["properties"]["spec"]
    return dict(spec["properties"]["it"])


@pytest.mark.parametrize("key", ["allOf", "anyOf", "oneOf"])
def test_version_two_omits_what_it_cannot_express(key: str) -> None:
    assert in_version_2({"type": "string", "default": "a", key: [{"maxLength": 5}]}) == {"type": "string"}


def test_version_two_keeps_properties_named_like_keywords() -> None:
    properties = {name: {"type": "string"} for name in ("not", "default", "nullable", "oneOf", "properties")}
    assert in_version_2({"type": "object", "properties": properties}) == {"type": "object", "properties": properties}


@pytest.mark.parametrize("key", ["nullable", "x-kubernetes-preserve-unknown-fields"])
def test_version_two_has_no_type_where_another_type_is_allowed(key: str) -> None:
    open_schema = {"type": "object", "description": "It.", "required": ["x"], "properties": {"x": {}}, key: True}
    assert in_version_2(open_schema).keys() <= {"description", key}
    for inside in ({"type": "array", "items": open_schema}, {"type": "object", "additionalProperties": open_schema}):
        assert "required" not in json.dumps(in_version_2(inside))


def test_version_two_describes_the_metadata_of_embedded_objects() -> None:
    found = in_version_2({"x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}})
    assert found["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}


@pytest.mark.parametrize("declared", [None, {"x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}}])
def test_version_two_leaves_a_kind_with_arbitrary_fields_open(declared: dict[str, Any] | None) -> None:
    found = custom_components(V2, ROBOTS, declared)["com.example.v1.Robot"]
    assert found.keys() == {"type", "x-kubernetes-group-version-kind"}


@pytest.mark.parametrize("odd", [{"properties": 7}, {"properties": {"a": 7}}, {"items": [{}]}])
def test_malformed_schemas_are_ignored_in_version_two(odd: dict[str, Any]) -> None:
    assert custom_components(V2, ROBOTS, odd)["com.example.v1.Robot"]["properties"].keys() >= {"metadata"}


def test_a_definition_that_is_nested_too_deeply_is_cut_off() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"properties": {"a": deep}}
    assert custom_components(V2, ROBOTS, deep)["com.example.v1.Robot"]["properties"]


def test_malformed_properties_are_ignored() -> None:
    found = custom_components(V3, ROBOTS, {"properties": 7})["com.example.v1.Robot"]
    assert found["properties"].keys() == {"apiVersion", "kind", "metadata"}


def nothing(api_version: str, kind: str) -> Document | None:
    return None


def test_every_view_and_each_of_its_fields_has_a_description() -> None:
    def check(schema: dict[str, Any], where: str) -> None:
        for name, field in schema.get("properties", {}).items():
            assert field["description"], f"{where}.{name}"
            check(field, f"{where}.{name}")
            check(field.get("items", {}), f"{where}.{name}")

    for kind in VIEWS:
        schema = with_views(nothing)(kind.api_versions[0], kind.kind)
        assert schema and schema["description"].endswith(("Read-only.", "Deleting it releases the claim."))
        check(schema, kind.kind)


def test_other_groups_get_the_other_schemas() -> None:
    schema = with_views(lambda api_version, kind: {"title": f"{api_version} {kind}"})
    assert schema("x.io/v1", "Device") == {"title": "x.io/v1 Device"}


def test_the_document_of_the_views_lists_only_the_supported_verbs() -> None:
    openapi = OpenAPIV3(WithViews(Catalogue(())), with_views(nothing))
    rendered = openapi.document("apis/devlet.dev/v1alpha1")
    assert rendered is not None
    assert b'"dev.devlet.v1alpha1.Device"' in rendered.body
    paths = json.loads(rendered.body)["paths"]
    methods = {path: set(item) - {"get", "parameters"} for path, item in paths.items()}
    releasing = "/apis/devlet.dev/v1alpha1/namespaces/{namespace}/preparedclaims/{name}"
    assert {path: rest for path, rest in methods.items() if rest} == {releasing: {"delete"}}
