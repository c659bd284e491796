"""Encode the JSON form of a Kubernetes message, using the schema table. The bytes are identical to Go's.

Go writes every scalar and message that is not a pointer, even if it is zero. So each message starts from the bytes of
its zero value, which the document's values replace. Keys that are not in the schema have no number and cannot be
sent.
"""

import binascii
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from devlet.objects.documents import Document
from devlet.objects.protobuf import wire as protobuf_wire
from devlet.objects.protobuf.times import write_micro_time, write_time
from devlet.objects.protobuf.wire import DELIMITED, VARINT, delimited, varint
from devlet.objects.schema.messages import Field, Message

Write = Callable[[Any], bytes]


class Encoder:
    """Encodes one message type. Initialized on first use, because few types are used."""

    def __init__(self, message: Message) -> None:
        self._message = message
        self._zero: list[bytes] = []  # per field, ascending: the bytes of an unset field
        self._members: dict[str, tuple[int, Write]] = {}
        self._inline: list[tuple[int, bytes, Encoder]] = []

    def write(self, document: Document | None) -> bytes:
        """Return the bytes; None is the zero value.

        A document of the wrong shape raises TypeError, AttributeError, ValueError, InvalidInput or RecursionError.
        """
        parts = (self._zero or self._fill()).copy()
        document = {} if document is None else document
        for rank, tag, sub in self._inline:
            parts[rank] = delimited(tag, sub.write(document))
        members = self._members
        for key, value in document.items():
            if value is not None and key in members:
                rank, write = members[key]
                parts[rank] = write(value)
        return b"".join(parts)

    def _fill(self) -> list[bytes]:
        zero: list[bytes] = []
        inline: list[tuple[int, bytes, Encoder]] = []
        for rank, (number, field) in enumerate(self._message.fields.items()):
            tag = protobuf_wire.tag(number, VARINT if field.wire == "varint" else DELIMITED)
            zero.append(_zero(field, tag))
            if field.inline:
                inline.append((rank, tag, encoder(field.message())))
            else:
                self._members[field.json_name] = (rank, _writer(field, tag))
        self._inline = inline
        self._zero = zero  # set last, because another thread may read it
        return zero


@cache
def encoder(message: Message) -> Encoder:
    return Encoder(message)


def _zero(field: Field, tag: bytes) -> bytes:
    if field.pointer or field.inline or field.label != "single" or field.type == "bytes" or field.special == "items":
        return b""
    if field.wire == "varint":
        return tag + b"\0"
    return delimited(tag, _payload(field)(None))


def _writer(field: Field, tag: bytes) -> Write:
    if field.label == "map":
        return _map(_payload(field), tag)
    if field.wire == "varint":
        one = _number(tag)
    else:
        one = _delimited(_payload(field), tag)
    if field.label == "repeated":
        return lambda values: b"".join(map(one, values))
    return one


def _number(tag: bytes) -> Write:
    return lambda value: tag + varint(value)


def _delimited(payload: Write, tag: bytes) -> Write:
    def write(value: Any) -> bytes:
        data = payload(value)
        return b"%b%b%b" % (tag, varint(len(data)), data)

    return write


def _map(payload: Write, tag: bytes) -> Write:
    def entry(item: tuple[str, Any]) -> bytes:
        key, value = item
        name, data = key.encode(), payload(value)
        body = b"\x0a%b%b\x12%b%b" % (varint(len(name)), name, varint(len(data)), data)
        return b"%b%b%b" % (tag, varint(len(body)), body)

    # Go sorts by the bytes of the keys. For UTF-8 that is the order of the characters, as in Python.
    return lambda value: b"".join(map(entry, sorted(value.items(), key=_first)))


def _first(item: tuple[str, Any]) -> str:
    return item[0]


def _payload(field: Field) -> Write:
    """Return an encoder for the bytes that follow a value's length. Each encodes None as the zero value."""
    return encoder(field.message()).write if field.is_message else _PAYLOADS[field.special or field.type]


def _string(value: str | None) -> bytes:
    return b"" if value is None else value.encode()


def _bytes(value: str | None) -> bytes:
    return b"" if value is None else binascii.a2b_base64(value)


def _quantity(value: str | float | None) -> bytes:
    return delimited(b"\x0a", str("0" if value is None else value).encode())


def _int_or_string(value: int | str | None) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + delimited(b"\x1a", value.encode())
    return b"\x08\x00\x10%b\x1a\x00" % varint(value or 0)


def _json(value: Any) -> bytes:
    return b"" if value is None else delimited(b"\x0a", msgspec.json.encode(value))


def _items(value: list[str] | None) -> bytes:
    return b"".join(delimited(b"\x0a", _string(item)) for item in ([] if value is None else value))


_PAYLOADS: dict[str, Write] = {
    "string": _string,
    "bytes": _bytes,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "time": write_time,
    "microtime": write_micro_time,
    "rawextension": _json,
    "fieldsv1": _json,
    "items": _items,
}
