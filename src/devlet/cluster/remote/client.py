"""The cluster port in front of an API server.

A watch ends whenever its stream does, for whatever reason: readers go on from the last version they saw. Lists and
watches are passed through as asked for; nothing is kept or retried here that the caller would have to know of.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec

from devlet.cluster.client import (
    ApplyPatch,
    DeleteOptions,
    EventType,
    JsonPatch,
    ListOptions,
    MergePatch,
    ObjectList,
    Patch,
    StrategicMergePatch,
    WatchEvent,
    WatchOptions,
    WriteOptions,
)
from devlet.cluster.remote import answers, paths
from devlet.cluster.remote.connection import Connection
from devlet.cluster.remote.discovery import Discovery
from devlet.cluster.remote.http import Request, Transport, open_transport
from devlet.cluster.remote.settings import Settings
from devlet.errors import BadRequest
from devlet.kit.clock import Clock
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource


@asynccontextmanager
async def connected(
    connection: Connection, settings: Settings = Settings(), clock: Clock | None = None
) -> AsyncIterator["RemoteCluster"]:
    """Connect to a cluster while the block runs. Nothing is sent before the first call."""
    async with open_transport(connection, settings, clock) as transport:
        yield RemoteCluster(transport)


class RemoteCluster:
    """A `devlet.cluster.client.Cluster`; use `connected`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.discovery = Discovery(transport)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Document:
        answer = await self._transport.call(Request("GET", paths.item(resource, name, namespace)))
        return answers.document(answer.body)

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = ListOptions()) -> ObjectList:
        path = paths.collection(resource, namespace)
        answer = await self._transport.call(Request("GET", path, paths.list_query(options)))
        return answers.page(resource, answer.body)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        request = Request("GET", paths.collection(resource, namespace), paths.watch_query(options))
        async with self._transport.stream(request) as chunks, aclosing(self._events(chunks, options)) as events:
            yield events

    async def _events(self, chunks: AsyncIterator[bytes], options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        lines = answers.Lines(self._transport.settings.max_event_bytes)
        async for chunk in chunks:
            for line in lines.feed(chunk):
                event = answers.event(line)
                if options.bookmarks or event.type is not EventType.BOOKMARK:
                    yield event

    async def create(
        self,
        resource: Resource,
        document: Document,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        path = (
            paths.item(resource, name, namespace, subresource) if subresource else paths.collection(resource, namespace)
        )
        return await self._write(Request("POST", path, paths.write_query(options), _encode(document)), options)

    async def update(
        self,
        resource: Resource,
        document: Document,
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        metadata = document.get("metadata") or {}
        path = paths.item(resource, metadata.get("name") or "", metadata.get("namespace") or "", subresource)
        return await self._write(Request("PUT", path, paths.write_query(options), _encode(document)), options)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str = "",
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Document:
        path = paths.item(resource, name, namespace, subresource)
        content_type, content, query = _patch(patch)
        query = [*paths.write_query(options), *query]
        return await self._write(Request("PATCH", path, query, _encode(content), content_type), options)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DeleteOptions()
    ) -> Document:
        path = paths.item(resource, name, namespace)
        answer = await self._transport.call(Request("DELETE", path, body=_encode(_delete_options(options))))
        return answers.document(answer.body)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
        select: ListOptions = ListOptions(),
    ) -> ObjectList:
        path, body = paths.collection(resource, namespace), _encode(_delete_options(options))
        answer = await self._transport.call(Request("DELETE", path, paths.list_query(select), body))
        return answers.page(resource, answer.body)

    async def _write(self, request: Request, options: WriteOptions) -> Document:
        answer = await self._transport.call(request)
        if options.warn is not None:
            for text in answers.warnings(answer.warnings):
                options.warn(text)
        return answers.document(answer.body)


def _encode(content: Any) -> bytes:
    try:
        return msgspec.json.encode(content)
    except (TypeError, ValueError, OverflowError, RecursionError) as e:
        raise BadRequest(f"the object cannot be written as JSON: {e}") from None


def _patch(patch: Patch) -> tuple[str, Any, paths.Query]:
    match patch:
        case JsonPatch(operations):
            return "application/json-patch+json", operations, []
        case MergePatch(document):
            return "application/merge-patch+json", document, []
        case StrategicMergePatch(document):
            return "application/strategic-merge-patch+json", document, []
        case ApplyPatch(document, force):
            return "application/apply-patch+yaml", document, [("force", "true")] if force else []  # JSON is YAML


def _delete_options(options: DeleteOptions) -> Document:
    wanted = options.preconditions
    preconditions = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
    members: Document = {
        "gracePeriodSeconds": options.grace_period,
        "propagationPolicy": options.propagation,
        "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
        "dryRun": ["All"] if options.dry_run else None,
    }
    head = {"kind": "DeleteOptions", "apiVersion": "v1"}
    return head | {key: value for key, value in members.items() if value is not None}
