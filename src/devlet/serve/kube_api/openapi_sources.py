"""The source of an OpenAPI document, and the document as it is sent.

Sources are compared by value. As long as its source is equal, a document is not built again."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from devlet.objects.documents import Document
from devlet.objects.kinds import Catalogue, Resource
from devlet.objects.release import KUBERNETES
from devlet.objects.schema import messages as schema
from devlet.serve.kube_api import discovery
from devlet.serve.kube_api.openapi_custom import CustomSchema, custom_components
from devlet.serve.kube_api.openapi_operations import Operation, operations
from devlet.serve.kube_api.openapi_schemas import LIST_META, OBJECT_META, Dialect, components

__all__ = ["INFO", "Rendered", "Source", "render", "rendered"]

INFO = {"title": "Kubernetes", "version": KUBERNETES}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A document as it is sent. `etag` is the value of the header, with its quotes."""

    body: bytes
    hash: str

    @property
    def etag(self) -> str:
        return f'"{self.hash}"'


def render(document: Document) -> Rendered:
    return rendered(msgspec.json.encode(document))


def rendered(body: bytes) -> Rendered:
    return Rendered(body, hashlib.sha256(body).hexdigest().upper())


@dataclass(frozen=True)
class Source:
    """The resources of a document, and the declared schema of each custom resource."""

    resources: tuple[tuple[Resource, Document | None], ...]

    @classmethod
    def of(cls, catalogue: Catalogue, api_versions: list[str], custom_schema: CustomSchema | None) -> "Source":
        served = [resource for version in api_versions for resource in discovery.served(catalogue, version)]
        return cls(tuple((resource, _declared(resource, custom_schema)) for resource in served))

    def operations(self) -> Iterator[Operation]:
        for resource, _ in self.resources:
            yield from operations(resource)

    def components(self, dialect: Dialect) -> dict[str, Document]:
        """Return the components that the operations refer to, by name."""
        custom: dict[str, Document] = {}
        for resource, declared in self.resources:
            if _is_custom(resource):
                custom |= custom_components(dialect, resource, declared)
        names = {name for operation in self.operations() for name in (operation.body, operation.answer) if name}
        if custom:
            names |= {OBJECT_META, LIST_META}
        return {**components(dialect, names - custom.keys()), **custom}


def _is_custom(resource: Resource) -> bool:
    return schema.message_of(resource.api_version, resource.kind.kind) is None


def _declared(resource: Resource, custom_schema: CustomSchema | None) -> Document | None:
    if custom_schema is None or not _is_custom(resource):
        return None
    return custom_schema(resource.api_version, resource.kind.kind)
