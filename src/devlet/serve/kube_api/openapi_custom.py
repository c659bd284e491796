"""Schemas of kinds that are not in the schema table: custom resources, with the schema of their definition, and views.

A definition's schema is copied, apart from kind, apiVersion and metadata, which are the same for all kinds. OpenAPI 2
cannot express null or "any other field", and kubectl refuses fields that a schema does not list. Where a definition
allows either, the schema of version 2 is left open."""

from collections.abc import Callable
from typing import Any

from devlet.objects.documents import Document
from devlet.objects.kinds import VIEWS_GROUP, Resource, group_of
from devlet.objects.views import VIEWS
from devlet.serve.kube_api.openapi_operations import kind_component
from devlet.serve.kube_api.openapi_schemas import LIST_META, OBJECT_META, V2, V3, Dialect, reference

__all__ = ["CustomSchema", "custom_components", "with_views"]

CustomSchema = Callable[[str, str], Document | None]
"""Returns the openAPIV3Schema of a kind, by apiVersion and kind; None if it has none."""

_MAX_DEPTH = 64
_ONLY_IN_V3 = ("allOf", "anyOf", "default", "not", "nullable", "oneOf")
_OPEN = "x-kubernetes-preserve-unknown-fields"
_VIEW_SCHEMAS = {view.kind.kind: view.schema for view in VIEWS}


def custom_components(dialect: Dialect, resource: Resource, declared: Document | None) -> dict[str, Document]:
    """Return the components of a custom resource and of its list."""
    kind, list_kind = resource.kind.kind, resource.kind.list_kind or f"{resource.kind.kind}List"
    name = kind_component(resource.api_version, kind)
    made = _version_3(declared) if dialect.wraps_references else _version_2(declared)
    items = {"type": "array", "items": _refer(dialect, name)}
    listed: Document = {
        "type": "object",
        "required": ["items"],
        "properties": {**_type_properties(), "items": items, "metadata": _refer(dialect, LIST_META)},
    }
    return {
        name: {**made, **_of_kind(resource, kind)},
        kind_component(resource.api_version, list_kind): {**listed, **_of_kind(resource, list_kind)},
    }


def _version_3(declared: Document | None) -> Document:
    made = {"type": "object", _OPEN: True} if declared is None else {**declared}
    return {**made, "properties": {**_properties(made), **_of_objects(V3)}}


def _version_2(declared: Document | None) -> Document:
    if declared is None or declared.get(_OPEN) is True:
        return {"type": "object"}
    return _plain({**declared, "properties": {**_properties(declared), **_of_objects(V2)}})


def _properties(schema: Document) -> Document:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _of_objects(dialect: Dialect) -> Document:
    return {**_type_properties(), "metadata": _refer(dialect, OBJECT_META)}


def _type_properties() -> Document:
    return {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


def _refer(dialect: Dialect, name: str) -> Document:
    target = reference(dialect, name)
    return {"allOf": [target]} if dialect.wraps_references else target


def _of_kind(resource: Resource, kind: str) -> Document:
    found = {"group": resource.group, "version": resource.version, "kind": kind}
    return {"x-kubernetes-group-version-kind": [found]}


def _plain(schema: Any, depth: int = 0) -> Document:
    """Return a schema without what OpenAPI 2 cannot express. A property may be called `not`, so only keywords go."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return {}
    if schema.get("nullable") is True or schema.get(_OPEN) is True:
        return {key: said for key, said in schema.items() if key == "description" or key.startswith("x-")}
    made = {key: said for key, said in schema.items() if key not in _ONLY_IN_V3}
    if schema.get("x-kubernetes-embedded-resource") is True:
        made["properties"] = {**_properties(made), **_of_objects(V2)}
    if "properties" in made:
        made["properties"] = {name: _plain(part, depth + 1) for name, part in _properties(made).items()}
    for key in ("additionalProperties", "items"):
        if isinstance(made.get(key), dict):
            made[key] = _plain(made[key], depth + 1)
    return made


def with_views(custom: CustomSchema) -> CustomSchema:
    """Return the schemas of the node's views, and for other groups those that `custom` returns."""

    def schema(api_version: str, kind: str) -> Document | None:
        return _VIEW_SCHEMAS.get(kind) if group_of(api_version) == VIEWS_GROUP else custom(api_version, kind)

    return schema
