"""The OpenAPI 2 document of everything, at `/openapi/v2`, for older programs and for files with `kind: List`.

No document describes that kind. For a file that contains one, kubectl requests this document instead of the newer ones,
as protobuf only, and checks the items itself. A field that is missing here is an unknown field to kubectl.
"""

from collections.abc import Iterable

from devlet.objects.documents import Document
from devlet.objects.kinds import Catalogue
from devlet.serve.kube_api import discovery, openapi_protobuf
from devlet.serve.kube_api.bodies import JSON, PROTOBUF, YAML
from devlet.serve.kube_api.openapi_custom import CustomSchema
from devlet.serve.kube_api.openapi_operations import Operation, Parameter, path_parameters
from devlet.serve.kube_api.openapi_schemas import V2, reference
from devlet.serve.kube_api.openapi_sources import INFO, Rendered, Source, render, rendered

__all__ = ["OpenAPIV2"]


class OpenAPIV2:
    """The document of the kinds in a catalogue, which may change. `custom_schema` finds schemas of custom kinds."""

    def __init__(self, catalogue: Catalogue, custom_schema: CustomSchema | None = None) -> None:
        self._catalogue = catalogue
        self._custom_schema = custom_schema
        self._source = Source(())
        self._made: dict[str, Rendered] = {}

    def document(self, media_type: str = JSON) -> Rendered:
        """Return `/openapi/v2` as JSON or protobuf. It is built at the first request and again after a change."""
        source = Source.of(self._catalogue, discovery.group_versions(self._catalogue), self._custom_schema)
        if source != self._source:
            self._source, self._made = source, {}
        if media_type not in self._made:
            self._made[media_type] = _render(_document(source), media_type)
        return self._made[media_type]


def _render(document: Document, media_type: str) -> Rendered:
    if media_type == openapi_protobuf.MEDIA_TYPE:
        return rendered(openapi_protobuf.encode(document))
    return render(document)


def _document(source: Source) -> Document:
    paths: dict[str, Document] = {}
    for operation in source.operations():
        if operation.path not in paths:
            paths[operation.path] = {"parameters": _parameters(path_parameters(operation.path))}
        paths[operation.path][operation.method] = _operation(operation)
    return {"swagger": "2.0", "info": INFO, "paths": paths, "definitions": source.components(V2)}


def _operation(operation: Operation) -> Document:
    body = [{"name": "body", "in": "body", "schema": reference(V2, operation.body)}] if operation.body else []
    answer = {"description": "OK", "schema": reference(V2, operation.answer)}
    return {
        "operationId": operation.id,
        "consumes": list(operation.body_types),
        "produces": [JSON, YAML, PROTOBUF],
        "parameters": [*body, *_parameters(operation.parameters)],
        "responses": {str(code): answer for code in operation.codes},
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.type,
    }


def _parameters(parameters: Iterable[Parameter]) -> list[Document]:
    return [
        {
            "name": parameter.name,
            "in": "path" if parameter.in_path else "query",
            "type": parameter.type,
            **({"required": True} if parameter.in_path else {}),
        }
        for parameter in parameters
    ]
