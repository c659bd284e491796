"""The OpenAPI 3 documents: an index at `/openapi/v3`, and one document per group version.

They are built at the first request, and again after the kinds of their group have changed. The index refers to each
document by the hash of its content, so clients may cache it forever. Building the index builds all of them."""

from collections.abc import Iterable

from devlet.objects.documents import Document
from devlet.objects.kinds import Catalogue, group_of
from devlet.serve.kube_api import discovery
from devlet.serve.kube_api.bodies import JSON, PROTOBUF, YAML
from devlet.serve.kube_api.openapi_custom import CustomSchema
from devlet.serve.kube_api.openapi_operations import Operation, Parameter, path_parameters
from devlet.serve.kube_api.openapi_schemas import V3, reference
from devlet.serve.kube_api.openapi_sources import INFO, Rendered, Source, render

__all__ = ["OpenAPIV3"]


class OpenAPIV3:
    """The documents of the kinds in a catalogue, which may change. `custom_schema` finds schemas of custom kinds."""

    def __init__(self, catalogue: Catalogue, custom_schema: CustomSchema | None = None) -> None:
        self._catalogue = catalogue
        self._custom_schema = custom_schema
        self._made: dict[str, tuple[Source, Rendered]] = {}

    def index(self) -> Rendered:
        """Return the index at `/openapi/v3`."""
        paths = {}
        for api_version in discovery.group_versions(self._catalogue):
            path = f"apis/{api_version}" if group_of(api_version) else f"api/{api_version}"
            if (document := self.document(path)) is not None:
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={document.hash}"}
        return render({"paths": paths})

    def document(self, path: str) -> Rendered | None:
        """Return `/openapi/v3/PATH`, for a path such as `api/v1`; None if nothing is served there."""
        api_version = _api_version(path)
        source = Source.of(self._catalogue, [api_version], self._custom_schema)
        if not source.resources:
            self._made.pop(api_version, None)
            return None
        made = self._made.get(api_version)
        if made is None or made[0] != source:
            made = self._made[api_version] = source, render(_document(source))
        return made[1]


def _api_version(path: str) -> str:
    match path.strip("/").split("/"):
        case ["api", version]:
            return version
        case ["apis", group, version]:
            return f"{group}/{version}"
        case _:
            return ""


def _document(source: Source) -> Document:
    paths: dict[str, Document] = {}
    for operation in source.operations():
        if operation.path not in paths:
            paths[operation.path] = {"parameters": _parameters(path_parameters(operation.path))}
        paths[operation.path][operation.method] = _operation(operation)
    return {"openapi": "3.0.0", "info": INFO, "paths": paths, "components": {"schemas": source.components(V3)}}


def _operation(operation: Operation) -> Document:
    answer = {"content": _content((JSON, PROTOBUF, YAML), operation.answer)}
    document: Document = {
        "operationId": operation.id,
        "parameters": _parameters(operation.parameters),
        "responses": {str(code): {"description": "OK", **answer} for code in operation.codes},
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.type,
    }
    if operation.body:
        document["requestBody"] = {"content": _content(operation.body_types, operation.body)}
    return document


def _content(media_types: Iterable[str], component: str) -> Document:
    return {media_type: {"schema": reference(V3, component)} for media_type in media_types}


def _parameters(parameters: Iterable[Parameter]) -> list[Document]:
    return [
        {
            "name": parameter.name,
            "in": "path" if parameter.in_path else "query",
            **({"required": True} if parameter.in_path else {}),
            "schema": {"type": parameter.type},
        }
        for parameter in parameters
    ]
