"""OpenAPI 2 as protobuf, read back field by field."""

import json
import struct
from typing import Any

import pytest

from devlet.objects.protobuf.wire import members
from devlet.serve.kube_api.openapi_protobuf import encode

PATH = "/api/v1/robots/{name}"


def at(blob: bytes, *numbers: int) -> list[Any]:
    """Return the values at the end of a path of field numbers."""
    found: list[Any] = [blob]
    for number in numbers:
        found = [value for part in found for n, value in members(part, 0, len(part)) if n == number]
    return found


def schema(**said: Any) -> bytes:
    """Return the message of a schema that is the only definition."""
    blob = encode({"definitions": {"Robot": said}})
    [found] = at(blob, 9, 1, 2)
    assert at(blob, 9, 1, 1) == [b"Robot"]
    return bytes(found)


def test_a_small_document_has_these_bytes() -> None:
    found = encode({"swagger": "2.0", "info": {"title": "T"}, "definitions": {"A": {"type": "object"}}})
    assert found == b"\x0a\x032.0\x12\x03\x0a\x01T\x4a\x12\x0a\x10\x0a\x01A\x12\x0b\xb2\x01\x08\x0a\x06object"


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("$ref", "#/definitions/A", (1,)),
        ("format", "int32", (2,)),
        ("description", "How many.", (4,)),
        ("pattern", "^a$", (13,)),
        ("type", "array", (22, 1)),
    ],
)
def test_a_string_has_its_field(key: str, value: str, place: tuple[int, ...]) -> None:
    assert at(schema(**{key: value}), *place) == [value.encode()]


@pytest.mark.parametrize(("key", "place"), [("maxLength", 11), ("minItems", 15), ("maxProperties", 17)])
def test_a_number_has_its_field_unless_it_is_zero(key: str, place: int) -> None:
    assert at(schema(**{key: 300}), place) == [300]
    assert schema(**{key: 0}) == b""


def test_limits_are_doubles() -> None:
    assert schema(maximum=10) == b"\x39" + struct.pack("<d", 10.0)
    assert schema(multipleOf=0.5) == b"\x31" + struct.pack("<d", 0.5)


def test_properties_are_pairs_of_name_and_schema() -> None:
    found = schema(properties={"a": {"type": "string"}, "b": {"properties": {"c": {"type": "integer"}}}})
    assert at(found, 25, 1, 1) == [b"a", b"b"]
    assert at(found, 25, 1, 2, 22, 1) == [b"string"]
    assert at(found, 25, 1, 2, 25, 1, 2, 22, 1) == [b"integer"]


def test_items_and_additional_properties_have_schemas() -> None:
    assert at(schema(items={"$ref": "#/x"}), 23, 1, 1) == [b"#/x"]
    assert at(schema(additionalProperties={"$ref": "#/x"}), 21, 1, 1) == [b"#/x"]


@pytest.mark.parametrize("allowed", [True, False])
def test_additional_properties_may_be_a_boolean(allowed: bool) -> None:
    assert at(schema(additionalProperties=allowed), 21, 2) == [allowed]


def test_values_of_any_type_are_encoded_as_yaml() -> None:
    types = [{"group": "", "version": "v1", "kind": "Robot"}]
    found = schema(default={"a": 1}, enum=["a", None], **{"x-kubernetes-group-version-kind": types})
    assert [json.loads(text) for text in at(found, 5, 2)] == [{"a": 1}]
    assert [json.loads(text) for text in at(found, 20, 2)] == ["a", None]
    assert at(found, 31, 1) == [b"x-kubernetes-group-version-kind"]
    assert json.loads(at(found, 31, 2, 2)[0]) == types


def test_an_operation_has_its_id_body_types_and_kind() -> None:
    kind = {"group": "", "version": "v1", "kind": "Robot"}
    patch = {"operationId": "patchRobot", "consumes": ["a/b", "c/d"], "x-kubernetes-group-version-kind": kind}
    blob = encode({"paths": {PATH: {"patch": patch}}})
    assert at(blob, 8, 2, 1) == [PATH.encode()]
    assert at(blob, 8, 2, 2, 8, 5) == [b"patchRobot"]
    assert at(blob, 8, 2, 2, 8, 7) == [b"a/b", b"c/d"]
    assert [json.loads(text) for text in at(blob, 8, 2, 2, 8, 13, 2, 2)] == [kind]


def test_the_message_of_a_parameter_depends_on_its_place() -> None:
    body = {"name": "body", "in": "body", "schema": {"$ref": "#/x"}}
    in_query = {"name": "dryRun", "in": "query", "type": "string"}
    in_path = {"name": "name", "in": "path", "type": "string", "required": True}
    blob = encode({"paths": {PATH: {"parameters": [body, in_query, in_path]}}})
    assert at(blob, 8, 2, 2, 9, 1, 1, 5, 1) == [b"#/x"]
    [query] = at(blob, 8, 2, 2, 9, 1, 2, 3)
    assert list(members(query, 0, len(query))) == [(2, b"query"), (4, b"dryRun"), (6, b"string")]
    [path] = at(blob, 8, 2, 2, 9, 1, 2, 4)
    assert list(members(path, 0, len(path))) == [(1, 1), (2, b"path"), (4, b"name"), (5, b"string")]


def test_an_answer_has_its_code_and_schema() -> None:
    answer = {"description": "OK", "schema": {"$ref": "#/x"}}
    blob = encode({"paths": {PATH: {"get": {"responses": {"200": answer}}}}})
    assert at(blob, 8, 2, 2, 2, 9, 1, 1) == [b"200"]
    assert at(blob, 8, 2, 2, 2, 9, 1, 2, 1, 1) == [b"OK"]
    assert at(blob, 8, 2, 2, 2, 9, 1, 2, 1, 2, 1, 1) == [b"#/x"]


@pytest.mark.parametrize(
    "odd",
    [{"type": 7}, {"properties": 7}, {"properties": {"a": 7}}, {"items": [{}]}, {"required": "a"}, {"maxLength": "1"}],
)
def test_malformed_schemas_are_ignored(odd: dict[str, Any]) -> None:
    found = schema(description="It.", **odd)
    assert at(found, 4) == [b"It."]
