"""Schemas of custom resources."""

import json
from typing import Any

import pytest

from devlet.objects.kinds import Kind, Resource
from devlet.serve.kube_api.openapi_custom import custom_components
from devlet.serve.kube_api.openapi_schemas import V2, V3

ROBOTS = Resource(Kind("Robot", "robots", ("example.com/v1",)), "example.com/v1")
DECLARED: dict[str, Any] = {
    "type": "object",
    "description": "A machine.",
    "properties": {
        "spec": {"type": "object", "nullable": True, "properties": {"arms": {"anyOf": [{"type": "integer"}]}}}
    },
}


def test_a_definition_is_taken_over_with_what_all_objects_have() -> None:
    found = custom_components(V3, ROBOTS, DECLARED)["com.example.v1.Robot"]
    assert found["description"] == "A machine."
    assert found["properties"]["spec"] == DECLARED["properties"]["spec"]
    assert found["properties"].keys() == {"spec", "apiVersion", "kind", "metadata"}
    wanted = [{"group": "example.com", "version": "v1", "kind": "Robot"}]
    assert found["x-kubernetes-group-version-kind"] == wanted
    assert "metadata" not in DECLARED["properties"]


def test_there_is_a_list_too() -> None:
    found = custom_components(V3, ROBOTS, None)["com.example.v1.RobotList"]
    target = {"allOf": [{"$ref": "#/components/schemas/com.example.v1.Robot"}]}
    assert found["properties"]["items"] == {"type": "array", "items": target}


def test_without_a_definition_anything_goes() -> None:
    found = custom_components(V3, ROBOTS, None)["com.example.v1.Robot"]
    assert found["x-kubernetes-preserve-unknown-fields"] is True


def in_version_2(schema: dict[str, Any]) -> dict[str, Any]:
    """What becomes of a property of the spec."""
    declared = {"properties": {"spec": {"properties": {"it": schema}}}}
    found: dict[str, Any] = custom_components(V2, ROBOTS, declared)["com.example.v1.Robot"]
    spec: dict[str, Any] = found["properties"]["spec"]
    return dict(spec["properties"]["it"])


@pytest.mark.parametrize("key", ["allOf", "anyOf", "oneOf"])
def test_version_two_leaves_out_what_it_has_no_words_for(key: str) -> None:
    assert in_version_2({"type": "string", "default": "a", key: [{"maxLength": 5}]}) == {"type": "string"}


def test_version_two_keeps_properties_whose_names_are_words_of_schemas() -> None:
    properties = {name: {"type": "string"} for name in ("not", "default", "nullable", "oneOf", "properties")}
    assert in_version_2({"type": "object", "properties": properties}) == {"type": "object", "properties": properties}


@pytest.mark.parametrize("key", ["nullable", "x-kubernetes-preserve-unknown-fields"])
def test_version_two_has_no_type_where_something_else_is_allowed_too(key: str) -> None:
    open_schema = {"type": "object", "description": "It.", "required": ["x"], "properties": {"x": {}}, key: True}
    assert in_version_2(open_schema).keys() <= {"description", key}
    for inside in ({"type": "array", "items": open_schema}, {"type": "object", "additionalProperties": open_schema}):
        assert "required" not in json.dumps(in_version_2(inside))


def test_version_two_knows_what_objects_inside_of_objects_have() -> None:
    found = in_version_2({"x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}})
    assert found["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}


@pytest.mark.parametrize("declared", [None, {"x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}}])
def test_version_two_says_nothing_of_a_kind_that_may_have_any_field(declared: dict[str, Any] | None) -> None:
    found = custom_components(V2, ROBOTS, declared)["com.example.v1.Robot"]
    assert found.keys() == {"type", "x-kubernetes-group-version-kind"}


@pytest.mark.parametrize("odd", [{"properties": 7}, {"properties": {"a": 7}}, {"items": [{}]}])
def test_odd_schemas_do_no_harm_in_version_two(odd: dict[str, Any]) -> None:
    assert custom_components(V2, ROBOTS, odd)["com.example.v1.Robot"]["properties"].keys() >= {"metadata"}


def test_a_definition_that_is_nested_too_deeply_is_cut_off() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"properties": {"a": deep}}
    assert custom_components(V2, ROBOTS, deep)["com.example.v1.Robot"]["properties"]


def test_odd_properties_do_no_harm() -> None:
    found = custom_components(V3, ROBOTS, {"properties": 7})["com.example.v1.Robot"]
    assert found["properties"].keys() == {"apiVersion", "kind", "metadata"}
