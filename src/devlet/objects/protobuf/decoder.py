"""Decode a protobuf-encoded Kubernetes message to its JSON form, using the schema table.

The result is what Go would write as JSON. `objects.schema.shape` decides which fields appear even if they are zero, as
it does for JSON documents. Fields with unknown numbers are skipped, because they have no name.
"""

import binascii
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from devlet.errors import InvalidInput
from devlet.objects.documents import Document, copy
from devlet.objects.protobuf import wire as protobuf_wire
from devlet.objects.protobuf.times import read_micro_time, read_time
from devlet.objects.protobuf.wire import DELIMITED, VARINT, Malformed, read_bounds, read_varint
from devlet.objects.schema import leaves
from devlet.objects.schema.messages import Field, Message, keeps_zero
from devlet.objects.schema.shape import plan

Read = Callable[[bytes, int, int], Any]  # the value between two offsets
Take = Callable[[bytes, int, int, Document], int]  # reads one field's value into the document; returns the next offset


class Decoder:
    """Decodes one message type. Initialized on first use, because few types are used."""

    def __init__(self, message: Message) -> None:
        self._message = message
        self._complete = plan(message).complete
        self._takes: dict[int, Take] = {}  # by tag

    def read(self, data: bytes, at: int, end: int) -> Document:
        made: Document = {}
        self.read_into(made, data, at, end)
        return self._complete(made)

    def read_into(self, made: Document, data: bytes, at: int, end: int) -> None:
        """Read fields without adding those that are always written: for an inline message the parent does that."""
        takes = self._takes or self._fill()
        while at < end:
            tag = data[at]
            if tag < 0x80:
                at += 1
            else:
                tag, at = read_varint(data, at, end)
            take = takes.get(tag)
            at = take(data, at, end, made) if take else self._pass_over(tag, data, at, end)

    def _pass_over(self, tag: int, data: bytes, at: int, end: int) -> int:
        number, wire = tag >> 3, tag & 7
        if not number:
            raise Malformed("a field has the number 0")
        if field := self._message.fields.get(number):
            raise Malformed(f"field {field.json_name or number} has wire type {wire} instead of {field.wire}")
        return protobuf_wire.skip(data, at, end, wire)

    def _fill(self) -> dict[int, Take]:
        self._takes = {
            number << 3 | wire: take
            for number, field in self._message.fields.items()
            for wire, take in _takes(field).items()
        }
        return self._takes


@cache
def decoder(message: Message) -> Decoder:
    return Decoder(message)


def _takes(field: Field) -> dict[int, Take]:
    """Return readers by wire type. A list of numbers may be packed or not."""
    if field.inline:
        return {DELIMITED: _inline(decoder(field.message()))}
    if field.label == "map":
        return {DELIMITED: _entries(field)}
    if field.wire == "varint":
        convert = _NUMBERS[field.type]
        if field.label == "repeated":
            return {VARINT: _number_element(field, convert), DELIMITED: _packed(field, convert)}
        return {VARINT: _number(field, convert)}
    return {DELIMITED: _element(field) if field.label == "repeated" else _single(field)}


def _inline(sub: Decoder) -> Take:
    def take(data: bytes, at: int, end: int, made: Document) -> int:
        start, stop = read_bounds(data, at, end)
        sub.read_into(made, data, start, stop)
        return stop

    return take


def _single(field: Field) -> Take:
    key, read, keep = field.json_name, _reader(field), keeps_zero(field)

    def take(data: bytes, at: int, end: int, made: Document) -> int:
        start, stop = at + 1, at + 1 + (data[at] if at < end else 0x80)
        if stop - start >= 0x80 or stop > end:
            start, stop = read_bounds(data, at, end)
        value = read(data, start, stop)
        if value or (keep and value is not None):  # a zero time is None
            made[key] = value
        else:
            made.pop(key, None)
        return stop

    return take


def _element(field: Field) -> Take:
    key, read = field.json_name, _reader(field)

    def take(data: bytes, at: int, end: int, made: Document) -> int:
        start, stop = read_bounds(data, at, end)
        made.setdefault(key, []).append(read(data, start, stop))
        return stop

    return take


def _entries(field: Field) -> Take:
    """Return a reader of consecutive map entries. The devices of a slice repeat most entries, so short ones are cached
    and copied."""
    key, read = field.json_name, _reader(field)
    tag = field.number << 3 | DELIMITED
    again = tag if tag < 0x80 else -1  # longer tags are left to the caller
    memory: dict[bytes, tuple[str, Any, bool]] = {}

    def take(data: bytes, at: int, end: int, made: Document) -> int:
        into = made.setdefault(key, {})
        while True:
            start, stop = at + 1, at + 1 + (data[at] if at < end else 0x80)
            if stop - start >= 0x80 or stop > end:
                start, stop = read_bounds(data, at, end)
            raw = data[start:stop]
            if (known := memory.get(raw)) is None:
                known = _read_entry(read, raw)
                if len(raw) < _SHORT:
                    if len(memory) >= _REMEMBERED:
                        memory.clear()
                    memory[raw] = known
            name, value, is_flat = known
            into[name] = value.copy() if is_flat else copy(value)
            if stop >= end or data[stop] != again:
                return stop
            at = stop + 1

    return take


_SHORT = 96  # bytes
_CONTAINERS = frozenset((dict, list))
_REMEMBERED = 2048  # entries, per map of the schema
_ENTRY_KEY = 1 << 3 | DELIMITED
_ENTRY_VALUE = 2 << 3 | DELIMITED


def _read_entry(read: Read, data: bytes) -> tuple[str, Any, bool]:
    """Return name, value, and whether the value is an object that contains no other object."""
    name, first, last = "", 0, 0
    at, stop = 0, len(data)
    while at < stop:
        tag, at = read_varint(data, at, stop)
        if tag == _ENTRY_KEY:
            start, at = read_bounds(data, at, stop)
            name = _string(data, start, at)
        elif tag == _ENTRY_VALUE:
            first, at = read_bounds(data, at, stop)
            last = at
        else:
            at = protobuf_wire.skip(data, at, stop, tag & 7)
    value = read(data, first, last)  # if there was no value, decode zero bytes: the zero value
    return name, value, isinstance(value, dict) and _CONTAINERS.isdisjoint(map(type, value.values()))


def _number(field: Field, convert: Callable[[int], Any]) -> Take:
    key, keep = field.json_name, keeps_zero(field)

    def take(data: bytes, at: int, end: int, made: Document) -> int:
        number, at = read_varint(data, at, end)
        if number or keep:
            made[key] = convert(number)
        else:
            made.pop(key, None)
        return at

    return take


def _number_element(field: Field, convert: Callable[[int], Any]) -> Take:
    key = field.json_name

    def take(data: bytes, at: int, end: int, made: Document) -> int:
        number, at = read_varint(data, at, end)
        made.setdefault(key, []).append(convert(number))
        return at

    return take


def _packed(field: Field, convert: Callable[[int], Any]) -> Take:
    key = field.json_name

    def take(data: bytes, at: int, end: int, made: Document) -> int:
        at, stop = read_bounds(data, at, end)
        while at < stop:
            number, at = read_varint(data, at, stop)
            made.setdefault(key, []).append(convert(number))
        return stop

    return take


_NUMBERS: dict[str, Callable[[int], Any]] = {
    "bool": bool,
    "int32": protobuf_wire.signed32,
    "int64": protobuf_wire.signed64,
}


def _reader(field: Field) -> Read:
    return decoder(field.message()).read if field.is_message else _READERS[field.special or field.type]


def _string(data: bytes, at: int, end: int) -> str:
    try:
        return data[at:end].decode()
    except UnicodeDecodeError:
        raise Malformed("a string is not UTF-8") from None


def _base64(data: bytes, at: int, end: int) -> str:
    return binascii.b2a_base64(data[at:end], newline=False).decode()


def _quantity(data: bytes, at: int, end: int) -> str:
    text = "".join(_string(value, 0, len(value)) for value in _first(data, at, end))
    try:
        return leaves.canonical_quantity(text) if text else "0"
    except InvalidInput:
        raise Malformed(f'"{text[:64]}" is not a quantity') from None


def _items(data: bytes, at: int, end: int) -> list[str]:
    return [_string(value, 0, len(value)) for value in _first(data, at, end)]


def _json(data: bytes, at: int, end: int) -> Any:
    raw = b"".join(_first(data, at, end))
    try:
        return leaves.anything(msgspec.json.decode(raw), []) if raw else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Malformed("a value that should be JSON text is not") from None
    except (leaves.Mismatch, RecursionError):
        raise Malformed(f"a JSON value is nested deeper than {leaves.MAX_DEPTH} levels") from None


def _first(data: bytes, at: int, end: int) -> list[bytes]:
    """Return the values of field 1, which holds strings or bytes."""
    if end - at >= 2 and data[at] == _ENTRY_KEY and data[at + 1] == end - at - 2 < 0x80:
        return [data[at + 2 : end]]  # usually there is no other field
    found = [value for number, value in protobuf_wire.members(data, at, end) if number == 1]
    texts = [value for value in found if isinstance(value, bytes)]
    if len(texts) != len(found):
        raise Malformed("a value that should be text is a number")
    return texts


def _int_or_string(data: bytes, at: int, end: int) -> int | str:
    found = dict(protobuf_wire.members(data, at, end))
    match found.get(1, 0), found.get(2, 0), found.get(3, b""):
        case 1, int(), bytes(text):
            return _string(text, 0, len(text))
        case int(), int(number), bytes():
            return protobuf_wire.signed32(number)
    raise Malformed("a number or string has a field of the wrong wire type")


_READERS: dict[str, Read] = {
    "string": _string,
    "bytes": _base64,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "time": read_time,
    "microtime": read_micro_time,
    "rawextension": _json,
    "fieldsv1": _json,
    "items": _items,
}
