"""The node's views as resources of the API, from devices to prepared claims: they can be read and listed.

Deleting a prepared claim unprepares it. With a grace period of 0 it is forgotten even if unpreparing fails.

The views are built at each request and stored nowhere, so a list has no version from which a client could watch. The
rest of the API treats them like any other resource: discovery, OpenAPI, tables and authorization."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from devlet.errors import BadRequest, Conflict, NotFound, NotPrepared
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.selectors import fields as field_selectors
from devlet.objects.selectors import labels as label_selectors
from devlet.objects.statuses import failure
from devlet.serve.kube_api import answers
from devlet.serve.kube_api.answers import Rejected, partial_metadata, partial_metadata_list
from devlet.serve.kube_api.calls import Call
from devlet.serve.kube_api.discovery import verbs
from devlet.serve.kube_api.handlers import delete_options, method_not_allowed
from devlet.serve.kube_api.tables import include_object, table

__all__ = ["NodeViews", "Views"]

SHOWN = 8  # candidates that an error names


class Views(Protocol):
    """The source of the views. It returns complete documents in the order of a list."""

    def devices(self) -> Sequence[Document]: ...

    def plugins(self) -> Sequence[Document]: ...

    async def holders(self) -> Sequence[Document]: ...

    async def drivers(self) -> Sequence[Document]: ...

    def prepared_claims(self) -> Sequence[Document]: ...

    async def release_claim(self, namespace: str, name: str, *, force: bool) -> None: ...


class NodeViews:
    def __init__(self, views: Views) -> None:
        self._views = views

    async def handle(self, call: Call, verb: str) -> web.StreamResponse:
        if verb not in verbs(call.resource.kind):
            raise method_not_allowed()
        if verb == "delete":
            return await self._release(call)
        if refusal := call.format.refusal(is_list=verb == "list"):
            raise Rejected(failure(406, "NotAcceptable", refusal))
        documents = await self._documents(call.resource.plural)
        if verb == "list":
            return _list(call, _selected(call, documents))
        return _object(call, _found(call, documents))

    async def _release(self, call: Call) -> web.Response:
        wanted = await delete_options(call)
        found = _found(call, self._views.prepared_claims())
        if wanted.dry_run:
            return _object(call, found)
        try:
            force = wanted.grace_period == 0
            await self._views.release_claim(call.target.namespace, call.target.name, force=force)
        except NotPrepared as e:
            raise Conflict(str(e), resource=call.resource.name, name=call.target.name) from e
        return _object(call, found)

    async def _documents(self, plural: str) -> Sequence[Document]:
        views = self._views
        if plural == "drivers":
            return await views.drivers()
        if plural == "holders":
            return await views.holders()
        sources = {"devices": views.devices, "plugins": views.plugins, "preparedclaims": views.prepared_claims}
        return sources[plural]()


def _selected(call: Call, documents: Sequence[Document]) -> list[Document]:
    resource, query = call.resource, call.query
    labels = label_selectors.parse(query.get("labelSelector", ""))
    fields = field_selectors.parse(
        query.get("fieldSelector", ""), resource.api_version, resource.kind.kind, resource.namespaced
    )
    return [
        document
        for document in documents
        if _is_in(document, call.target.namespace)
        and labels.matches(document["metadata"].get("labels"))
        and fields.matches(document)
    ]


def _is_in(document: Document, namespace: str) -> bool:
    return not namespace or document["metadata"].get("namespace", "") == namespace


def _found(call: Call, documents: Sequence[Document]) -> Document:
    """Find a document by its name. A device is also found by its id alone if the id is unique."""
    target = call.target
    for document in documents:
        metadata = document["metadata"]
        if (metadata.get("namespace", ""), metadata["name"]) == (target.namespace, target.name):
            return document
    named = [d for d in documents if d["kind"] == "Device" and d["spec"]["id"] == target.name]
    if len(named) == 1:
        return named[0]
    if named:
        raise BadRequest(_ambiguous(target.name, [d["metadata"]["name"] for d in named]))
    raise _not_found(call.resource, target.name)


def _ambiguous(id: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f'{len(names)} devices have the id "{id}": say which by its name: {", ".join(names[:SHOWN])}{more}'


def _not_found(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource.name} "{name}" not found', resource=resource.name, name=name)


def _object(call: Call, document: Document) -> web.Response:
    match call.format.as_kind:
        case "":
            shown = document
        case "Table":
            shown = _table(call, [document])
        case _:
            shown = partial_metadata(document, version=call.format.version)
    return answers.document(shown, pretty=call.pretty)


def _list(call: Call, documents: Sequence[Document]) -> web.Response:
    match call.format.as_kind:
        case "":
            items = [{k: v for k, v in d.items() if k not in ("kind", "apiVersion")} for d in documents]
            kind = f"{call.resource.kind.kind}List"
            shown = {"kind": kind, "apiVersion": call.resource.api_version, "metadata": {}, "items": items}
        case "Table":
            shown = _table(call, documents)
        case _:
            shown = partial_metadata_list(documents, {}, version=call.format.version)
    return answers.document(shown, pretty=call.pretty)


def _table(call: Call, documents: Sequence[Document]) -> Document:
    included = include_object(call.query.get("includeObject", ""))
    return table(call.resource, documents, now=call.now, include_object=included, version=call.format.version)
