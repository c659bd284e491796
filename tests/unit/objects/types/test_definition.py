from collections.abc import Iterator
from typing import Any

import pytest

from devlet.errors import BadRequest
from devlet.objects.documents import Document, copy
from devlet.objects.types.definition import check_types, is_schema

Path = tuple[str | int, ...]
SCHEMA: Document = {
    "type": "object",
    "description": "d",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "nullable": True,
            "maxProperties": 3,
            "additionalProperties": {"type": "string", "pattern": "^a", "maxLength": 5, "minLength": 1},
            "x-kubernetes-validations": [{"rule": "true", "message": "m"}],
        },
        "list": {
            "type": "array",
            "items": {"type": "number", "minimum": 1.5, "exclusiveMinimum": True, "multipleOf": 2},
            "x-kubernetes-list-type": "set",
            "x-kubernetes-list-map-keys": ["k"],
            "uniqueItems": False,
        },
        "any": {"x-kubernetes-preserve-unknown-fields": True, "enum": [1, "a", None], "default": {"a": 1}},
        "one": {"oneOf": [{"type": "string"}], "not": {"type": "null"}, "additionalProperties": False},
    },
}
DEFINITION: Document = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}},
        "names": {
            "plural": "widgets",
            "kind": "Widget",
            "singular": "widget",
            "listKind": "WidgetList",
            "shortNames": ["w"],
            "categories": ["all"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "deprecated": False,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas"}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".a", "priority": 1}],
                "selectableFields": [{"jsonPath": ".spec.a"}],
            }
        ],
    },
    "status": {
        "acceptedNames": {"plural": "widgets", "kind": "Widget"},
        "storedVersions": ["v1"],
        "conditions": [{"type": "Established", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    },
}
FREE = ("default", "enum", "metadata")


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place of the document whose type is fixed."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if key not in FREE:
            yield (*path, key)
            yield from places(part, (*path, key))


def mistyped(document: Document, path: Path) -> Document:
    made: Document = copy(document)
    parent: Any = made
    for key in path[:-1]:
        parent = parent[key]
    old = parent[path[-1]]
    parent[path[-1]] = 5 if isinstance(old, str | list | bool) else "wrong"
    return made


def test_a_complete_definition_has_the_right_types() -> None:
    check_types(DEFINITION)
    check_types({"spec": {"versions": [{"name": "v1", "subresources": None, "schema": None}]}, "status": None})
    assert is_schema(SCHEMA)


@pytest.mark.parametrize("path", list(places(DEFINITION)), ids=str)
def test_a_value_of_the_wrong_type_is_refused_wherever_it_is(path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot be handled as a CustomResourceDefinition: json: cannot unmarshal"):
        check_types(mistyped(DEFINITION, path))


def test_the_refusal_names_the_field_and_both_types() -> None:
    document = {"spec": {"versions": [{"name": "v1", "subresources": True}]}}
    with pytest.raises(BadRequest, match=r"field spec.versions\[0\].subresources: Expected object \| null, got bool"):
        check_types(document)


@pytest.mark.parametrize("path", list(places(SCHEMA)), ids=str)
def test_a_schema_with_a_mistyped_keyword_is_not_a_schema(path: Path) -> None:
    assert not is_schema(mistyped(SCHEMA, path))


def test_a_schema_that_is_nested_too_deeply_is_not_a_schema() -> None:
    schema: Document = {}
    for _ in range(5000):
        schema = {"not": schema}
    assert not is_schema(schema)
