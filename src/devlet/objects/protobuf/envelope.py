"""Kubernetes objects as protobuf: the envelope around an object, lists, and the frames of a watch.

An enveloped object is four magic bytes and a message with the type (apiVersion, kind) and the object's own bytes, which
do not repeat the type. A watch frame has no envelope, but the object in it does. The layout comes from the schema
table; `objects.protobuf.decoder` and `objects.protobuf.encoder` handle the messages.
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

_NO_CONTENT_TYPE = b"\x1a\x00\x22\x00"  # contentEncoding and contentType, which Go writes although they are empty


def decode(blob: bytes, *, api_version: str = "", kind: str = "") -> Document:
    """Return the object in the envelope, kind and apiVersion first. The given type is used if the envelope has none."""
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
    """Return the object in its envelope. The document must be in shape (`objects.schema.shape`), with kind and
    apiVersion."""
    api_version, kind = document.get("apiVersion"), document.get("kind")
    message = _message_of(api_version, kind)
    return _envelope(str(api_version), str(kind), encode_message(message, document))


def encode_list(api_version: str, kind: str, metadata: Document, items: Iterable[bytes]) -> bytes:
    """Return an enveloped list of objects that `encode_message` has encoded."""
    head = encode_message(_message_of(api_version, kind), {"metadata": metadata})
    return _envelope(api_version, kind, head + b"".join(delimited(b"\x12", item) for item in items))


def decode_message(message: Message, data: bytes) -> Document:
    """Return the JSON form of a message without envelope. It has no kind and no apiVersion, which are not part of the
    message."""
    with _malformed(f"{message.name.rpartition('.')[2]} in protobuf"):
        return decoder(message).read(data, 0, len(data))


def encode_message(message: Message, document: Document) -> bytes:
    """Return the message without envelope. Keys that are not in the schema are left out."""
    try:
        return encoder(message).write(document)
    except (AttributeError, TypeError, ValueError, InvalidInput, RecursionError) as wrong:
        conform(document, message)  # raises an error that names the malformed field
        raise BadRequest(f"{message.name.rpartition('.')[2]} cannot be written as protobuf: {wrong}") from wrong


def encode_watch_event(type: str, document: Document) -> bytes:
    """Return one event, preceded by its length. `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""
    event = delimited(b"\x0a", type.encode()) + delimited(b"\x12", delimited(b"\x0a", encode(document)))
    return len(event).to_bytes(4) + event


def decode_watch_frame(frame: bytes) -> tuple[str, Document]:
    """Return type and object of one event, which is preceded by its length."""
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
    """Return the last value of each field of a message that has only strings and messages."""
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
