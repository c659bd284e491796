"""A watch over HTTP: one JSON object per line, sent as soon as it happens.

A reader that does not read fills its socket, then its queue in the store, and is then cut off: it costs a bounded
amount of memory, and nobody waits for it.
"""

from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from devlet.cluster.client import WatchOptions
from devlet.cluster.store.store import Store
from devlet.cluster.store.watch import Frame
from devlet.errors import Expired, Unavailable
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.statuses import status_of
from devlet.serve.kube_api import bodies
from devlet.serve.kube_api.long_answers import cut_off, write
from devlet.serve.kube_api.partial_metadata import partial_metadata
from devlet.serve.kube_api.tables import Printer, include_object, table_for_watch

if TYPE_CHECKING:
    from devlet.serve.kube_api.handlers import Call

_encoder = msgspec.json.Encoder()


async def stream(
    store: Store, call: "Call", wanted: WatchOptions, warnings: list[str], how: Printer
) -> web.StreamResponse:
    """Sends the whole watch. What can be wrong with the request is raised before anything is sent."""
    response = web.StreamResponse(headers={"Content-Type": bodies.JSON, "Cache-Control": "no-cache, private"})
    for text in warnings:
        response.headers.add("Warning", text)
    try:
        await _send(store, call, wanted, how, response)
        await response.write_eof()
    except ConnectionError:
        cut_off(call.http)
    return response


async def _send(store: Store, call: "Call", wanted: WatchOptions, how: Printer, response: web.StreamResponse) -> None:
    try:
        async with store.watch_batches(call.resource, call.target.namespace, wanted) as batches:
            await response.prepare(call.http)
            first = True
            async for batch in batches:
                lines = [_line(call, frame, how, first=first and not i) for i, frame in enumerate(batch)]
                await write(call.http, response, b"".join(lines))
                first = False
    except (Expired, Unavailable) as e:
        if isinstance(e, Unavailable) and not response.prepared:
            raise
        if not response.prepared:
            await response.prepare(call.http)
        await write(call.http, response, _encoder.encode({"type": "ERROR", "object": status_of(e)}) + b"\n")


def _line(call: "Call", frame: Frame, how: Printer, *, first: bool) -> bytes:
    resource: Resource = call.resource
    if not call.format.as_kind and frame.body is not None and resource.api_version == resource.kind.storage_version:
        return b'{"type":"%s","object":%s}\n' % (frame.type.value.encode(), frame.body)
    return _encoder.encode({"type": frame.type.value, "object": _shown(call, frame, how, first)}) + b"\n"


def _shown(call: "Call", frame: Frame, how: Printer, first: bool) -> Document:
    document = frame.document(call.resource.api_version)
    form = call.format
    if form.as_kind == "Table":
        include = include_object(call.query.get("includeObject", ""))
        return table_for_watch(how, document, now=call.now, first=first, include_object=include, version=form.version)
    return partial_metadata(document, version=form.version) if form.as_kind else document
