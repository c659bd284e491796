"""Types of a CustomResourceDefinition. The kind is not in the schema table, so these types check its documents.

As in Go, null is the same as an absent field. Unknown fields stay in the document and are ignored here.
"""

from typing import Any

import msgspec
from msgspec import Struct, field

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.types.meta import View

__all__ = ["Definition", "JSONSchema", "check_types", "is_schema"]


class ExternalDocs(View, frozen=True, kw_only=True):
    description: str | None = None
    url: str | None = None


class Validation(View, frozen=True, kw_only=True):
    rule: str | None = None
    message: str | None = None
    message_expression: str | None = None
    reason: str | None = None
    field_path: str | None = None
    optional_old_self: bool | None = None


class JSONSchema(Struct, frozen=True, kw_only=True, rename="camel"):
    """What `openAPIV3Schema` may contain; `default`, `enum` and `example` hold any JSON value."""

    id: str | None = None
    schema: str | None = field(default=None, name="$schema")
    ref: str | None = field(default=None, name="$ref")
    description: str | None = None
    type: str | None = None
    format: str | None = None
    title: str | None = None
    maximum: float | None = None
    exclusive_maximum: bool | None = None
    minimum: float | None = None
    exclusive_minimum: bool | None = None
    max_length: int | None = None
    min_length: int | None = None
    pattern: str | None = None
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool | None = None
    multiple_of: float | None = None
    enum: list[Any] | None = None
    max_properties: int | None = None
    min_properties: int | None = None
    required: list[str] | None = None
    items: "JSONSchema | list[JSONSchema] | None" = None
    all_of: "list[JSONSchema] | None" = None
    one_of: "list[JSONSchema] | None" = None
    any_of: "list[JSONSchema] | None" = None
    not_: "JSONSchema | None" = field(default=None, name="not")
    properties: "dict[str, JSONSchema] | None" = None
    additional_properties: "JSONSchema | bool | None" = None
    pattern_properties: "dict[str, JSONSchema] | None" = None
    dependencies: "dict[str, JSONSchema | list[str]] | None" = None
    additional_items: "JSONSchema | bool | None" = None
    definitions: "dict[str, JSONSchema] | None" = None
    external_docs: ExternalDocs | None = None
    nullable: bool | None = None
    preserve_unknown_fields: bool | None = field(default=None, name="x-kubernetes-preserve-unknown-fields")
    embedded_resource: bool | None = field(default=None, name="x-kubernetes-embedded-resource")
    int_or_string: bool | None = field(default=None, name="x-kubernetes-int-or-string")
    list_map_keys: list[str] | None = field(default=None, name="x-kubernetes-list-map-keys")
    list_type: str | None = field(default=None, name="x-kubernetes-list-type")
    map_type: str | None = field(default=None, name="x-kubernetes-map-type")
    validations: list[Validation] | None = field(default=None, name="x-kubernetes-validations")


class VersionSchema(View, frozen=True, kw_only=True):
    open_api_v3_schema: JSONSchema | None = field(default=None, name="openAPIV3Schema")


class Scale(View, frozen=True, kw_only=True):
    spec_replicas_path: str | None = None
    status_replicas_path: str | None = None
    label_selector_path: str | None = None


class Subresources(View, frozen=True, kw_only=True):
    status: dict[str, Any] | None = None
    scale: Scale | None = None


class PrinterColumn(View, frozen=True, kw_only=True):
    name: str | None = None
    type: str | None = None
    format: str | None = None
    description: str | None = None
    priority: int | None = None
    json_path: str | None = None


class SelectableField(View, frozen=True, kw_only=True):
    json_path: str | None = None


class Version(View, frozen=True, kw_only=True):
    name: str | None = None
    served: bool | None = None
    storage: bool | None = None
    deprecated: bool | None = None
    deprecation_warning: str | None = None
    schema: VersionSchema | None = None
    subresources: Subresources | None = None
    additional_printer_columns: list[PrinterColumn] | None = None
    selectable_fields: list[SelectableField] | None = None


class Names(View, frozen=True, kw_only=True):
    plural: str | None = None
    singular: str | None = None
    short_names: list[str] | None = None
    kind: str | None = None
    list_kind: str | None = None
    categories: list[str] | None = None


class Service(View, frozen=True, kw_only=True):
    namespace: str | None = None
    name: str | None = None
    path: str | None = None
    port: int | None = None


class ClientConfig(View, frozen=True, kw_only=True):
    url: str | None = None
    service: Service | None = None
    ca_bundle: str | None = None


class Webhook(View, frozen=True, kw_only=True):
    client_config: ClientConfig | None = None
    conversion_review_versions: list[str] | None = None


class Conversion(View, frozen=True, kw_only=True):
    strategy: str | None = None
    webhook: Webhook | None = None


class Spec(View, frozen=True, kw_only=True):
    group: str | None = None
    names: Names | None = None
    scope: str | None = None
    versions: list[Version] | None = None
    conversion: Conversion | None = None
    preserve_unknown_fields: bool | None = None


class Condition(View, frozen=True, kw_only=True):
    type: str | None = None
    status: str | None = None
    last_transition_time: str | None = None
    reason: str | None = None
    message: str | None = None
    observed_generation: int | None = None


class Status(View, frozen=True, kw_only=True):
    conditions: list[Condition] | None = None
    accepted_names: Names | None = None
    stored_versions: list[str] | None = None
    observed_generation: int | None = None


class Definition(View, frozen=True, kw_only=True):
    spec: Spec | None = None
    status: Status | None = None


def check_types(document: Document) -> None:
    """Raise BadRequest, with the path of the field, if a value of a definition has the wrong type."""
    try:
        msgspec.convert(document, Definition)
    except msgspec.ValidationError as e:
        problem, _, path = str(e).partition(" - at `$.")
        where = f"field {path.rstrip('`')}" if path else "the object"
        kind = "CustomResourceDefinition"
        text = f"json: cannot unmarshal {where}: {problem.replace('`', '')}"
        raise BadRequest(f'{kind} in version "v1" cannot be handled as a {kind}: {text}') from None


def is_schema(value: object) -> bool:
    """Return True if every keyword of the value has the type that OpenAPI gives it."""
    try:
        msgspec.convert(value, JSONSchema)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True
