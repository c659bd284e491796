"""OpenAPI schemas of the API's messages, built from the schema table.

The two versions of OpenAPI are two dialects. They differ in the target of a reference, in whether a reference may have
other keys beside it (not in version 3, so it is wrapped in `allOf`), and in how they express "string or number".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from devlet.objects.documents import Document
from devlet.objects.kinds import group_of
from devlet.objects.schema import messages as schema
from devlet.serve.kube_api.openapi_descriptions import descriptions

__all__ = [
    "DELETE_OPTIONS",
    "LIST_META",
    "OBJECT_META",
    "PATCH",
    "STATUS",
    "V2",
    "V3",
    "Dialect",
    "component",
    "component_name",
    "components",
    "reference",
    "references",
]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
DELETE_OPTIONS = f"{_META}.DeleteOptions"
LIST_META = f"{_META}.ListMeta"
OBJECT_META = f"{_META}.ObjectMeta"
PATCH = f"{_META}.Patch"
STATUS = f"{_META}.Status"

_TYPE_WORDS = {
    "apiVersion": "The group and version of the API in which the object is written.",
    "kind": "What the object is.",
}
_SCALARS: dict[str, Document] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
}
_SPECIAL: dict[str, Document] = {
    "fieldsv1": {"type": "object"},
    "items": {"type": "array", "items": {"type": "string"}},
    "microtime": {"type": "string", "format": "date-time"},
    "rawextension": {"type": "object"},
    "time": {"type": "string", "format": "date-time"},
}


@dataclass(frozen=True)
class Dialect:
    """A version of OpenAPI."""

    prefix: str
    wraps_references: bool

    def special(self, kind: str) -> Document:
        """Return the schema of a type that has its own JSON form."""
        if kind == "quantity":
            return {"oneOf": [{"type": "string"}, {"type": "number"}]} if self.wraps_references else {"type": "string"}
        if kind != "intorstring":
            return _SPECIAL[kind]
        either: Document = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
        return {"format": "int-or-string", **(either if self.wraps_references else {"type": "string"})}


V2 = Dialect("#/definitions/", wraps_references=False)
V3 = Dialect("#/components/schemas/", wraps_references=True)


def component_name(message: str) -> str:
    """Return the OpenAPI name of a message: `k8s.io.api.core.v1.Pod` becomes `io.k8s.api.core.v1.Pod`."""
    return f"io.k8s.{message.removeprefix('k8s.io.')}"


def reference(dialect: Dialect, name: str) -> Document:
    return {"$ref": dialect.prefix + name}


def components(dialect: Dialect, roots: Iterable[str]) -> dict[str, Document]:
    """Return the schemas of these components and of all components that they refer to, by name."""
    found: dict[str, Document] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name], below = component(dialect, name)
            waiting += below
    return dict(sorted(found.items()))


@cache
def component(dialect: Dialect, name: str) -> tuple[Document, tuple[str, ...]]:
    """Return the schema of one component, which must not be changed, and the names that it refers to. Raise KeyError if
    the component is unknown."""
    if name == PATCH:
        return {"type": "object", "description": "A patch. Its media type says which form it has."}, ()
    message = schema.message(f"k8s.io.{name.removeprefix('io.k8s.')}")
    if message.special:
        return dialect.special(message.special), ()
    made = _object(dialect, message)
    return made, tuple(references(dialect, made))


def references(dialect: Dialect, value: Any) -> Iterator[str]:
    """Yield the names of the components that a schema refers to."""
    if isinstance(value, dict):
        for key, member in value.items():
            if key == "$ref" and isinstance(member, str):
                yield member.removeprefix(dialect.prefix)
            else:
                yield from references(dialect, member)
    elif isinstance(value, list):
        for member in value:
            yield from references(dialect, member)


def _object(dialect: Dialect, message: schema.Message) -> Document:
    said = descriptions(message.name)
    properties = {key: _property(dialect, field, said.get(key, "")) for key, field in message.properties.items()}
    if message.is_kind:
        properties |= {key: {"type": "string", "description": text} for key, text in _TYPE_WORDS.items()}
    document: Document = {"type": "object", "properties": dict(sorted(properties.items()))}
    if message.required:
        document["required"] = list(message.required)
    if text := said.get(""):
        document["description"] = text
    if message.map_type:
        document["x-kubernetes-map-type"] = message.map_type
    if types := _types(message.name):
        document["x-kubernetes-group-version-kind"] = types
    return document


def _property(dialect: Dialect, field: schema.Field, description: str) -> Document:
    value = _value(dialect, field)
    if field.label == "repeated":
        value = {"type": "array", "items": value}
    elif field.label == "map":
        value = {"type": "object", "additionalProperties": value}
    extensions = {
        "description": description,
        "default": field.default,
        "x-kubernetes-list-type": field.list_type,
        "x-kubernetes-list-map-keys": list(field.list_map_keys),
        "x-kubernetes-map-type": field.map_type,
        "x-kubernetes-patch-merge-key": field.patch_merge_key,
        "x-kubernetes-patch-strategy": ",".join(field.patch_strategy),
    }
    return {**value, **{key: said for key, said in extensions.items() if said not in (None, "", [])}}


def _value(dialect: Dialect, field: schema.Field) -> Document:
    """Return the schema of a field's value, or of one element if the field is repeated."""
    if field.type in _SCALARS:
        return _SCALARS[field.type]
    if field.special == "items":
        return dialect.special(field.special)
    target = reference(dialect, component_name(field.type))
    return {"allOf": [target]} if dialect.wraps_references else target


@cache
def _types(message_name: str) -> list[Document]:
    """Return the group, version and kind of the objects that this message represents."""
    found = [key.rpartition("/") for key, name in schema.kinds().items() if name == message_name]
    return [{"group": group_of(v), "version": v.rpartition("/")[2], "kind": kind} for v, _, kind in found]
