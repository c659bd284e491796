"""The verbs on stored objects. Each handler turns an authorized request into calls of the store, and into an answer."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import msgspec
from aiohttp import web

from devlet.auth.users import User
from devlet.cluster.client import (
    ApplyPatch,
    DeleteOptions,
    FieldValidation,
    JsonPatch,
    ListOptions,
    MergePatch,
    Patch,
    StrategicMergePatch,
    WriteOptions,
)
from devlet.cluster.served_store import GuardedDelete, GuardedWrite, ServedStore, StoredPage
from devlet.errors import BadRequest, DevletError, UnsupportedPatch
from devlet.kit.chance import random
from devlet.objects.conversion import warning_for
from devlet.objects.documents import Document
from devlet.objects.schema.shape import conform_kind
from devlet.objects.statuses import failure
from devlet.serve.kube_api import answers, bodies, discovery, long_answers, options
from devlet.serve.kube_api.answers import Rejected, partial_metadata, partial_metadata_list
from devlet.serve.kube_api.calls import Call
from devlet.serve.kube_api.definitions import Definitions
from devlet.serve.kube_api.paths import Target
from devlet.serve.kube_api.reader_limits import ReaderLimits
from devlet.serve.kube_api.tables import include_object, printer, table
from devlet.serve.kube_api.watches import stream

__all__ = ["Admit", "Call", "Handlers", "delete_options", "method_not_allowed"]

# Called with the user, the verb, the target, the object as it would be stored, and as it is. Raises if it is refused.
Admit = Callable[[User, str, Target, Document | None, Document | None], None]


class Handlers:
    """`admit` applies the rules that depend on the content of the object."""

    def __init__(self, store: ServedStore, admit: Admit, limits: ReaderLimits | None = None) -> None:
        self._store = store
        self._limits = limits or ReaderLimits()
        self._admit = admit
        self._definitions = Definitions(store)

    async def handle(self, call: Call, verb: str) -> web.StreamResponse:
        handler: Callable[[Call], Awaitable[web.StreamResponse]] = getattr(self, f"_{verb}")
        if deprecated := warning_for(call.resource):
            call.warn(deprecated)
        try:
            response = await handler(call)
        except DevletError as e:  # a refusal carries the warnings as well
            response = answers.error(e, pretty=call.pretty)
        if not response.prepared:
            for text in call.warnings:
                response.headers.add("Warning", answers.warning(text))
        return response

    async def _get(self, call: Call) -> web.StreamResponse:
        _check_form(call, is_list=False)
        if (version := call.query.get("resourceVersion", "")) not in ("", "0"):
            not_older = ListOptions(field_selector=_with_name("", call.target.name), limit=1, resource_version=version)
            await self._store.page(call.resource, call.target.namespace, not_older)
        found = await self._store.get(call.resource, call.target.name, call.target.namespace)
        return self._object(call, found)

    async def _list(self, call: Call) -> web.StreamResponse:
        wanted = options.list_options(call.query)
        if call.target.name:
            wanted = replace(wanted, field_selector=_with_name(wanted.field_selector, call.target.name))
        _check_form(call, is_list=True)
        page = await self._store.page(call.resource, call.target.namespace, wanted)
        if not call.format.as_kind:
            if not call.pretty and call.format.media_type == bodies.JSON:
                hold = partial(self._limits.holding, call.user.name)
                return await long_answers.send(call, answers.list_pieces(call.resource, page), hold)
            body = msgspec.json.format(answers.list_body(call.resource, page), indent=2) + b"\n"
            return web.Response(body=body, content_type=bodies.JSON)
        size = sum(len(record.body) for record in page.records)
        return await call.computed(size, partial(self._transformed, call, page))

    def _transformed(self, call: Call, page: StoredPage) -> web.Response:
        """Return a list as a table, or with the metadata only."""
        documents = page.documents(call.resource.api_version)
        if call.format.as_kind == "Table":
            shown = table(
                call.resource,
                documents,
                now=call.now,
                include_object=include_object(call.query.get("includeObject", "")),
                resource_version=str(page.version),
                continue_=page.continue_,
                remaining=page.remaining,
                additional_columns=self._definitions.columns(call.resource),
                version=call.format.version,
            )
        else:
            shown = partial_metadata_list(documents, answers.list_metadata(page), version=call.format.version)
        return answers.document(shown, pretty=call.pretty)

    async def _watch(self, call: Call) -> web.StreamResponse:
        wanted = options.watch_options(call.query)
        if call.target.name:
            wanted = replace(wanted, field_selector=_with_name(wanted.field_selector, call.target.name))
        if wanted.timeout is None:
            wanted = replace(wanted, timeout=random.uniform(1800, 3600))  # as kube-apiserver does
        warnings = [answers.warning(text) for text in call.warnings]
        how = printer(call.resource, self._definitions.columns(call.resource))
        return await stream(self._store, call, wanted, warnings, how, self._limits)

    async def _create(self, call: Call) -> web.StreamResponse:
        target, wanted = call.target, call.write_options("CreateOptions")
        if target.name and not target.subresource:
            raise method_not_allowed()
        kind, api_version = call.resource.kind.kind, call.resource.api_version
        if target.subresource:
            below = discovery.subresource(target.subresource)
            kind, api_version = below.kind, below.api_version or api_version
        blob = await call.body()
        if target.subresource:
            bodies.check_size(len(blob), bodies.MAX_UNSTORED_BODY)
        document = await self._decoded(blob, call, wanted, api_version, kind)
        created = await self._store.create(
            call.resource,
            document,
            target.namespace,
            name=target.name,
            subresource=target.subresource,
            options=self._guarded(call, "create", wanted, len(blob)),
        )
        return self._written(call, created, wanted, code=201)

    async def _update(self, call: Call) -> web.StreamResponse:
        target, wanted = call.target, call.write_options("UpdateOptions")
        blob = await call.body()
        document = await self._decoded(blob, call, wanted, call.resource.api_version, call.resource.kind.kind)
        _check_address(target, document)
        existed = self._store.exists(call.resource, target.name, target.namespace)
        guarded = self._guarded(call, "update", wanted, len(blob))
        updated = await self._store.update(call.resource, document, subresource=target.subresource, options=guarded)
        return self._written(call, updated, wanted, code=200 if existed else 201)

    async def _patch(self, call: Call) -> web.StreamResponse:
        target, wanted = call.target, call.write_options("PatchOptions")
        is_apply = bodies.media_type(call.content_type) == bodies.APPLY_PATCH
        options.check_force(call.query, is_apply=is_apply)
        if is_apply:
            wanted = replace(wanted, field_manager=call.query.get("fieldManager", ""))
        blob = await call.body()
        decoded = await call.computed(len(blob), partial(bodies.decode_patch, blob, call.content_type))
        patch = _patch(decoded, call.content_type, call.query)
        existed = self._store.exists(call.resource, target.name, target.namespace)
        patched = await self._store.patch(
            call.resource,
            target.name,
            patch,
            target.namespace,
            subresource=target.subresource,
            options=self._guarded(call, "patch", wanted, len(blob)),
        )
        return self._written(call, patched, wanted, code=200 if existed else 201)

    async def _delete(self, call: Call) -> web.StreamResponse:
        target, wanted = call.target, await self._delete_options(call)
        answer = await self._store.delete(call.resource, target.name, target.namespace, wanted)
        if answer["kind"] == "Status":
            return answers.document(answer, pretty=call.pretty)
        return self._object(call, answer)

    async def _deletecollection(self, call: Call) -> web.StreamResponse:
        if "deletecollection" not in discovery.verbs(call.resource.kind):
            raise method_not_allowed()
        wanted = await self._delete_options(call)
        selected = options.list_options(call.query)
        deleted = await self._store.delete_collection(call.resource, call.target.namespace, wanted, selected)
        items = [{k: v for k, v in d.items() if k not in ("kind", "apiVersion")} for d in deleted.items]
        shown = {
            "kind": f"{call.resource.kind.kind}List",
            "apiVersion": call.resource.api_version,
            "metadata": {"resourceVersion": deleted.resource_version},
            "items": items,
        }
        return answers.document(shown, pretty=call.pretty)

    async def _delete_options(self, call: Call) -> DeleteOptions:
        wanted = await delete_options(call)
        guard = partial(self._admit, call.user, "delete", call.target)
        return GuardedDelete(wanted.grace_period, wanted.propagation, wanted.preconditions, wanted.dry_run, guard)

    def _guarded(self, call: Call, verb: str, wanted: WriteOptions, size: int) -> GuardedWrite:
        """Return the options of a write. `size` is that of the body; the size of the stored object counts as well."""
        guard = partial(self._admit, call.user, verb, call.target)
        shaped = bodies.media_type(call.content_type) == bodies.PROTOBUF  # by our decoder
        stored = self._store.table(call.resource).get((call.target.namespace, call.target.name))
        return GuardedWrite(
            wanted.dry_run,
            wanted.field_manager,
            wanted.field_validation,
            wanted.warn,
            shaped,
            guard,
            call.runner(size + (len(stored.body) if stored else 0)),
        )

    async def _decoded(self, blob: bytes, call: Call, wanted: WriteOptions, api_version: str, kind: str) -> Document:
        body = await call.decoded(blob, api_version, kind)
        for path in body.duplicates:
            finding = f'duplicate field "{path}"'
            if wanted.field_validation is FieldValidation.STRICT:
                kind = body.document.get("kind", kind)
                version = body.document.get("apiVersion", api_version).rpartition("/")[2]
                detail = f"strict decoding error: {finding}"
                raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {kind}: {detail}')
            if wanted.field_validation is FieldValidation.WARN:
                call.warn(finding)
        return body.document

    def _written(self, call: Call, document: Document, wanted: WriteOptions, *, code: int) -> web.Response:
        """Return the answer to a write. If the client gets the object as it is stored, the stored bytes are sent."""
        metadata, resource = document.get("metadata") or {}, call.resource
        as_stored = document["apiVersion"] == resource.api_version == resource.kind.storage_version
        if as_stored and not (wanted.dry_run or call.format.as_kind or call.pretty):
            record = self._store.table(resource).get((metadata.get("namespace", ""), metadata.get("name", "")))
            if record is not None and str(record.version) == metadata.get("resourceVersion"):
                return answers.stored(record, code=code)
        return self._object(call, document, code=code)

    def _object(self, call: Call, document: Document, *, code: int = 200) -> web.Response:
        form = call.format
        if document["kind"] == "Status" or not form.as_kind:
            shown = document
        elif form.as_kind == "Table":
            shown = table(
                call.resource,
                [document],
                now=call.now,
                include_object=include_object(call.query.get("includeObject", "")),
                resource_version=document["metadata"].get("resourceVersion", ""),
                additional_columns=self._definitions.columns(call.resource),
                version=form.version,
            )
        else:
            shown = partial_metadata(document, version=form.version)
        return answers.document(shown, code=code, pretty=call.pretty)


def _check_form(call: Call, *, is_list: bool) -> None:
    if refusal := call.format.refusal(is_list=is_list):
        raise Rejected(failure(406, "NotAcceptable", refusal))


def method_not_allowed() -> Rejected:
    message = "the server does not allow this method on the requested resource"
    return Rejected(failure(405, "MethodNotAllowed", message, {}))


def _patch(value: object, content_type: str, query: options.Query) -> Patch:
    media = bodies.media_type(content_type)
    if media == bodies.JSON_PATCH:
        if not isinstance(value, list):
            raise BadRequest("a JSON patch must be a list of operations")
        bodies.check_operations(len(value))
        return JsonPatch(value)
    if not isinstance(value, dict):
        raise BadRequest("the patch is not an object")
    if media == bodies.MERGE_PATCH:
        return MergePatch(value)
    if media == bodies.STRATEGIC_MERGE_PATCH:
        return StrategicMergePatch(value)
    if media == bodies.APPLY_PATCH:
        return ApplyPatch(value, options.is_forced(query))
    raise UnsupportedPatch("415: Unsupported Media Type")


def _check_address(target: Target, document: Document) -> None:
    """Check that the body of a PUT names the same object as the URL. The body may omit the namespace."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise BadRequest("metadata is not an object")
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
    if not name:
        raise BadRequest(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if namespace and namespace != target.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if target.namespace:
        metadata["namespace"] = target.namespace


def _with_name(selector: str, name: str) -> str:
    return f"{selector},metadata.name={name}" if selector else f"metadata.name={name}"


async def delete_options(call: Call) -> DeleteOptions:
    """Return the options in the body and the query."""
    blob = await call.body()
    bodies.check_size(len(blob), bodies.MAX_UNSTORED_BODY)
    body: Document | None = None
    if blob:
        body = (await call.decoded(blob, "v1", "DeleteOptions")).document
        if body.get("kind", "DeleteOptions") != "DeleteOptions":
            raise BadRequest(f"{body['kind']} cannot be handled as DeleteOptions")
        body = conform_kind(body, "v1", "DeleteOptions")
    return options.delete_options(call.query, body)
