"""Schemas of custom resources."""

from typing import Any

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


def test_version_two_leaves_out_what_it_has_no_words_for() -> None:
    found = custom_components(V2, ROBOTS, DECLARED)["com.example.v1.Robot"]
    assert found["properties"]["spec"] == {"type": "object", "properties": {"arms": {}}}


def test_a_definition_that_is_nested_too_deeply_is_cut_off() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"properties": deep}
    assert custom_components(V2, ROBOTS, deep)["com.example.v1.Robot"]["properties"]


def test_odd_properties_do_no_harm() -> None:
    found = custom_components(V3, ROBOTS, {"properties": 7})["com.example.v1.Robot"]
    assert found["properties"].keys() == {"apiVersion", "kind", "metadata"}
