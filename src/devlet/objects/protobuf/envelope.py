"""Kubernetes objects as protobuf: the envelope around an object, lists, and the frames of a watch.

An enveloped object is four magic bytes and a message with the type (apiVersion, kind) and the object's own bytes,
which do not repeat the type. A watch frame is not enveloped itself, but the object in it is. Layouts come from the
schema table; messages are read by `objects.protobuf_decoder` and written by `objects.protobuf_encoder`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from devlet.errors import BadRequest, InvalidInput
from devlet.objects.documents import Document
from devlet.objects.protobuf import wire as protobuf_wire
from devlet.objects.protobuf.decoder import decoder
from devlet.objects.protobuf.encoder import encoder
from devlet.objects.protobuf.wire import Malformed, delimited
from devlet.objects.schema.messages import Message, message_of
from devlet.objects.schema.shape import conform

__all__ = [
    "MAGIC",
    "decode",
    "decode_message",
    "decode_watch_frame",
    "encode",
    "encode_list",
    "encode_message",
    "encode_watch_event",
]

MAGIC = b"k8s\0"

_NO_CONTENT_TYPE = b"\x1a\x00\x22\x00"  # contentEncoding and contentType, which Go writes though they are empty


def decode(blob: bytes, *, api_version: str = "", kind: str = "") -> Document:
    """The object in the envelope, kind and apiVersion first; where the envelope has no type, the one given here."""
    if not blob.startswith(MAGIC):
        raise BadRequest("the body is not Kubernetes protobuf: it does not start with the bytes 6b 38 73 00")
    with _malformed("the protobuf envelope"):
        envelope = _fields(blob, len(MAGIC))
        type_meta = _fields(envelope.get(1, b""))
        said_version, said_kind = type_meta.get(1, b"").decode(), type_meta.get(2, b"").decode()
        if envelope.get(3):
            raise Malformed(f"content encoding {envelope[3][:40]!r} is not supported")
    api_version, kind = said_version or api_version, said_kind or kind
    document = decode_message(_message_of(api_version, kind), envelope.get(2, b""))
    return {"kind": kind, "apiVersion": api_version, **document}


def encode(document: Document) -> bytes:
    """The object in its envelope. The document is in shape (`objects.shape`) and says kind and apiVersion."""
    api_version, kind = document.get("apiVersion"), document.get("kind")
    message = _message_of(api_version, kind)
    return _envelope(str(api_version), str(kind), encode_message(message, document))


def encode_list(api_version: str, kind: str, metadata: Document, items: Iterable[bytes]) -> bytes:
    """A list, in its envelope, of objects that `encode_message` has written before."""
    head = encode_message(_message_of(api_version, kind), {"metadata": metadata})
    return _envelope(api_version, kind, head + b"".join(delimited(b"\x12", item) for item in items))


def decode_message(message: Message, data: bytes) -> Document:
    """The JSON form of a message without envelope. No kind and no apiVersion: these are not part of it."""
    with _malformed(f"{message.name.rpartition('.')[2]} in protobuf"):
        return decoder(message).read(data, 0, len(data))


def encode_message(message: Message, document: Document) -> bytes:
    """The message without envelope. Keys the schema does not know are left out."""
    try:
        return encoder(message).write(document)
    except (AttributeError, TypeError, ValueError, InvalidInput, RecursionError) as wrong:
        conform(document, message)  # says better which member is out of shape
        raise BadRequest(f"{message.name.rpartition('.')[2]} cannot be written as protobuf: {wrong}") from wrong


def encode_watch_event(type: str, document: Document) -> bytes:
    """One event with its length in front. `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""
    event = delimited(b"\x0a", type.encode()) + delimited(b"\x12", delimited(b"\x0a", encode(document)))
    return len(event).to_bytes(4) + event


def decode_watch_frame(frame: bytes) -> tuple[str, Document]:
    """Type and object of one event, given with its length in front."""
    if len(frame) < 4 or int.from_bytes(frame[:4]) != len(frame) - 4:
        raise BadRequest(f"watch frame: {len(frame)} bytes do not match the length in front")
    with _malformed("the watch event"):
        event = _fields(frame, 4)
        raw = _fields(event.get(2, b"")).get(1, b"")
        type_ = event.get(1, b"").decode()
    return type_, decode(raw)


def _envelope(api_version: str, kind: str, data: bytes) -> bytes:
    type_meta = delimited(b"\x0a", api_version.encode()) + delimited(b"\x12", kind.encode())
    return b"".join((MAGIC, delimited(b"\x0a", type_meta), delimited(b"\x12", data), _NO_CONTENT_TYPE))


def _fields(data: bytes, start: int = 0) -> dict[int, bytes]:
    """The last value of each field of a message that has only texts and messages."""
    found: dict[int, bytes] = {}
    for number, value in protobuf_wire.members(data, start, len(data)):
        if isinstance(value, bytes):
            found[number] = value
        elif number <= 4:
            raise Malformed(f"field {number} has wire type {protobuf_wire.VARINT} instead of bytes")
    return found


def _message_of(api_version: object, kind: object) -> Message:
    if not isinstance(kind, str) or not kind:
        raise BadRequest("Object 'Kind' is missing in a protobuf object")
    if not isinstance(api_version, str) or not api_version or not api_version.isprintable():
        raise BadRequest(f"Object 'apiVersion' is missing or malformed in a protobuf {kind[:80]}")
    message = message_of(api_version, kind)
    if message is None:
        subject = f'no kind "{kind[:80]}" is registered for version "{api_version[:80]}"'
        raise BadRequest(f"{subject} in protobuf; send it as JSON")
    return message


@contextmanager
def _malformed(subject: str) -> Iterator[None]:
    try:
        yield
    except Malformed as wrong:
        raise BadRequest(f"{subject} is malformed: {wrong}") from None
    except UnicodeDecodeError:
        raise BadRequest(f"{subject} is malformed: a string is not UTF-8") from None
