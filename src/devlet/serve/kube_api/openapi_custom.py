"""Schemas of kinds that are not in the schema table: custom resources, described by their definition if it does.

What a definition says is taken over as it is, apart from kind, apiVersion and metadata, which are the same for all."""

from collections.abc import Callable
from typing import Any

from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.serve.kube_api.openapi_operations import kind_component
from devlet.serve.kube_api.openapi_schemas import LIST_META, OBJECT_META, Dialect, reference

__all__ = ["CustomSchema", "custom_components"]

CustomSchema = Callable[[str, str], Document | None]
"""The openAPIV3Schema of a kind, by apiVersion and kind; None if there is none."""

_MAX_DEPTH = 64
_ONLY_IN_V3 = ("allOf", "anyOf", "not", "nullable", "oneOf")


def custom_components(dialect: Dialect, resource: Resource, declared: Document | None) -> dict[str, Document]:
    """The components of a custom resource and of its list."""
    kind, list_kind = resource.kind.kind, resource.kind.list_kind or f"{resource.kind.kind}List"
    name = kind_component(resource.api_version, kind)
    made: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if declared is not None:
        made = _plain(declared) if not dialect.wraps_references else {**declared}
    properties = made.get("properties")
    made["properties"] = {
        **(properties if isinstance(properties, dict) else {}),
        **_type_properties(),
        "metadata": _refer(dialect, OBJECT_META),
    }
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


def _type_properties() -> Document:
    return {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


def _refer(dialect: Dialect, name: str) -> Document:
    target = reference(dialect, name)
    return {"allOf": [target]} if dialect.wraps_references else target


def _of_kind(resource: Resource, kind: str) -> Document:
    found = {"group": resource.group, "version": resource.version, "kind": kind}
    return {"x-kubernetes-group-version-kind": [found]}


def _plain(value: Any, depth: int = 0) -> Any:
    """Without what OpenAPI 2 has no words for."""
    if depth > _MAX_DEPTH:
        return {}
    if isinstance(value, dict):
        return {key: _plain(member, depth + 1) for key, member in value.items() if key not in _ONLY_IN_V3}
    return [_plain(member, depth + 1) for member in value] if isinstance(value, list) else value
