"""HTTP answers: documents, errors, lists made of stored bytes, and objects reduced to their metadata."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from aiohttp import web

from devlet.cluster.served_store import StoredObject, StoredPage
from devlet.errors import DevletError, Unavailable
from devlet.objects.conversion import convert
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.statuses import status_of
from devlet.serve.kube_api.bodies import JSON, YAML
from devlet.serve.kube_api.negotiation import Format

PIECE = 256 << 10  # bytes
_encoder = msgspec.json.Encoder()


class Rejected(DevletError):
    """An answer for which `devlet.errors` has no error: 401, 404 of a path, 405, 406."""

    def __init__(self, status: Document) -> None:
        super().__init__(status["message"])
        self.status = status


def encode(document: Document, *, pretty: bool = False) -> bytes:
    text = _encoder.encode(document)
    return (msgspec.json.format(text, indent=2) if pretty else text) + b"\n"


def document(
    value: Document, *, code: int = 200, pretty: bool = False, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(body=encode(value, pretty=pretty), status=code, content_type=JSON, headers=headers)


def stored(record: StoredObject, *, code: int = 200) -> web.Response:
    """Return an object in its storage version, without decoding and encoding it."""
    return web.Response(body=record.body + b"\n", status=code, content_type=JSON)


def in_form(response: web.StreamResponse, form: Format) -> web.StreamResponse:
    """Return the answer, converted to YAML if the client asked for it."""
    if form.media_type != YAML or not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return response
    import yaml  # few clients ask for it

    written = yaml.safe_dump(msgspec.json.decode(response.body), sort_keys=False, allow_unicode=True)
    response.body = written.encode()
    response.content_type = YAML
    return response


def text(value: str, code: int = 200) -> web.Response:
    return web.Response(text=value, status=code)


def error(failure: DevletError, *, pretty: bool = False) -> web.Response:
    status = failure.status if isinstance(failure, Rejected) else status_of(failure)
    headers = {}
    if isinstance(failure, Unavailable):
        headers["Retry-After"] = str(max(1, round(failure.retry_after)))
    return document(status, code=status["code"], pretty=pretty, headers=headers)


def warning(message: str) -> str:
    """Return the value of a Warning header."""
    safe = "".join(c if c.isprintable() else " " for c in message)[:2048]
    escaped = safe.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


def list_metadata(page: StoredPage) -> Document:
    metadata: Document = {"resourceVersion": str(page.version)}
    if page.continue_:
        metadata["continue"] = page.continue_
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def list_body(resource: Resource, page: StoredPage) -> bytes:
    return b"".join(list_pieces(resource, page))


def list_pieces(resource: Resource, page: StoredPage) -> Iterator[bytes]:
    """Yield a list in pieces made of stored bytes. Objects are decoded only if the list has another version than the
    storage. Each piece is large enough to be worth a write."""
    head = {
        "kind": f"{resource.kind.kind}List",
        "apiVersion": resource.api_version,
        "metadata": list_metadata(page),
    }
    piece = bytearray(_encoder.encode(head)[:-1] + b',"items":[')
    for i, item in enumerate(_items(resource, page.records)):
        if len(piece) > PIECE:
            yield bytes(piece)
            piece.clear()
        piece += b"," + item if i else item
    yield bytes(piece + b"]}\n")


def _items(resource: Resource, records: Iterable[StoredObject]) -> Iterable[bytes]:
    # Items of a list do not repeat kind and apiVersion; both come first in what is stored.
    kind, stored = resource.kind.kind, resource.kind.storage_version
    prefix = _encoder.encode({"kind": kind, "apiVersion": stored})[:-1] + b","
    for record in records:
        if resource.api_version == stored and record.body.startswith(prefix):
            yield b"{" + record.body[len(prefix) :]
        else:
            item = convert(record.document(), resource.api_version)
            yield _encoder.encode({k: v for k, v in item.items() if k not in ("kind", "apiVersion")})


def partial_metadata(document: Document, *, version: str = "v1") -> Document:
    """Return the object reduced to its metadata, in this version of meta.k8s.io."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": document.get("metadata", {}),
    }


def partial_metadata_list(documents: Iterable[Document], metadata: Document, *, version: str = "v1") -> Document:
    """Return a list of objects reduced to their metadata. `metadata` is that of the list. Unlike the items of other
    lists, these have a kind and an apiVersion."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "items": [partial_metadata(document, version=version) for document in documents],
    }
