"""A watch over HTTP: one JSON object per line, sent as soon as it happens.

A client that does not read fills its socket and is then cut off. Until then, the few events that are being sent to it
count in its user's budget; later events wait in the store, where all watches share them.
"""

from collections.abc import Iterator
from functools import partial

import msgspec
from aiohttp import web

from devlet.cluster.client import WatchOptions
from devlet.cluster.served_store import ServedStore, StoredEvent
from devlet.errors import Expired, Unavailable
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.statuses import status_of
from devlet.serve.kube_api import bodies
from devlet.serve.kube_api.answers import partial_metadata
from devlet.serve.kube_api.calls import Call
from devlet.serve.kube_api.long_answers import Hold, cut_off, write
from devlet.serve.kube_api.reader_limits import ReaderLimits
from devlet.serve.kube_api.tables import Printer, include_object, table_for_watch

_LARGE = 16 << 10  # bytes of an object that is sent in a write of its own
_encoder = msgspec.json.Encoder()


async def stream(
    store: ServedStore, call: Call, wanted: WatchOptions, warnings: list[str], how: Printer, limits: ReaderLimits
) -> web.StreamResponse:
    """Send the whole watch. Raise errors of the request before anything is sent."""
    response = web.StreamResponse(headers={"Content-Type": bodies.JSON, "Cache-Control": "no-cache, private"})
    for text in warnings:
        response.headers.add("Warning", text)
    try:
        with limits.watching(call.user.name):
            await _send(store, call, wanted, how, response, partial(limits.holding, call.user.name))
        await response.write_eof()
    except ConnectionError:
        cut_off(call.http)
    return response


async def _send(
    store: ServedStore, call: Call, wanted: WatchOptions, how: Printer, response: web.StreamResponse, hold: Hold
) -> None:
    try:
        async with store.watch_batches(call.resource, call.target.namespace, wanted) as batches:
            await response.prepare(call.http)
            first = True
            async for batch in batches:
                pieces = [piece for i, event in enumerate(batch) for piece in _line(call, event, how, first and not i)]
                batch.clear()  # it holds more than the pieces do
                await write(call.http, response, *_joined(pieces), hold=hold)
                first = False
    except (Expired, Unavailable) as e:
        if isinstance(e, Unavailable) and not response.prepared:
            raise
        if not response.prepared:
            await response.prepare(call.http)
        await write(call.http, response, _encoder.encode({"type": "ERROR", "object": status_of(e)}) + b"\n")


def _line(call: Call, event: StoredEvent, how: Printer, first: bool) -> tuple[bytes, ...]:
    """Return the line of one event. An object that is sent as it is stored is a separate piece: the store's bytes."""
    resource: Resource = call.resource
    if not call.format.as_kind and event.body is not None and resource.api_version == resource.kind.storage_version:
        return b'{"type":"%s","object":' % event.type.value.encode(), event.body, b"}\n"
    return (_encoder.encode({"type": event.type.value, "object": _shown(call, event, how, first)}), b"\n")


def _joined(pieces: list[bytes]) -> Iterator[bytes]:
    """Yield the same bytes, with neighbouring small pieces put together."""
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < _LARGE:
            small.append(piece)
            continue
        yield b"".join(small)
        small = []
        yield piece
    yield b"".join(small)


def _shown(call: Call, event: StoredEvent, how: Printer, first: bool) -> Document:
    document = event.document(call.resource.api_version)
    form = call.format
    if form.as_kind == "Table":
        include = include_object(call.query.get("includeObject", ""))
        return table_for_watch(how, document, now=call.now, first=first, include_object=include, version=form.version)
    return partial_metadata(document, version=form.version) if form.as_kind else document
