"""An OpenAPI 2 document as protobuf, in gnostic's message `openapi.v2.Document`: the form that kubectl requests.

The tables list only the keys that our documents use. Values that do not fit are left out, because the schema of a
custom resource may contain anything. Values of any type (defaults, extensions) are sent as YAML; JSON is valid YAML.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from devlet.objects.documents import Document
from devlet.objects.protobuf.wire import DELIMITED, FIXED64, VARINT, delimited, tag, varint

__all__ = ["MEDIA_TYPE", "MEDIA_TYPES", "encode"]

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
MEDIA_TYPES = (MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
"""The names that clients request. kubectl uses the older one, whose `@` is not valid in a media type."""

_Payload = Callable[[Any], bytes]
_Write = Callable[[int, Any], bytes]
_Fields = Mapping[str, tuple[int, _Write]]


def encode(document: Document) -> bytes:
    return _members(_DOCUMENT, document)


def _text(number: int, value: Any) -> bytes:
    return _field(number, value.encode()) if isinstance(value, str) else b""


def _flag(number: int, value: Any) -> bytes:
    return tag(number, VARINT) + varint(1) if value is True else b""


def _integer(number: int, value: Any) -> bytes:
    return tag(number, VARINT) + varint(value) if type(value) is int and value else b""


def _double(number: int, value: Any) -> bytes:
    return tag(number, FIXED64) + struct.pack("<d", value) if type(value) in (int, float) and value else b""


def _one(payload: _Payload) -> _Write:
    return lambda number, value: _field(number, payload(value))


def _each(write: _Write) -> _Write:
    def written(number: int, values: Any) -> bytes:
        return b"".join(write(number, value) for value in values) if isinstance(values, list) else b""

    return written


def _named(payload: _Payload, number: int = 1) -> _Write:
    """Write a JSON object as a message with repeated pairs of name and value."""

    def pairs(values: Any) -> Iterable[bytes]:
        for name, value in values.items() if isinstance(values, dict) else ():
            yield _field(number, _text(1, name) + _field(2, payload(value)))

    return _one(lambda values: b"".join(pairs(values)))


def _field(number: int, payload: bytes) -> bytes:
    return delimited(tag(number, DELIMITED), payload)


def _members(fields: _Fields, value: Any, extensions: int = 0) -> bytes:
    """Encode a message. `extensions` is the number of its field for keys that begin with x-."""
    if not isinstance(value, dict):
        return b""
    parts = [write(number, value[key]) for key, (number, write) in fields.items() if key in value]
    if extensions:
        parts += [
            _field(extensions, _text(1, key) + _field(2, _any(said)))
            for key, said in value.items()
            if key.startswith("x-")
        ]
    return b"".join(parts)


def _any(value: Any) -> bytes:
    return _field(2, msgspec.json.encode(value) + b"\n")


def _schema(value: Any) -> bytes:
    return _members(_SCHEMA, value, extensions=31)


def _additional(value: Any) -> bytes:
    """Encode a schema or a boolean, which is written even if it is false."""
    return tag(2, VARINT) + varint(value) if isinstance(value, bool) else _field(1, _schema(value))


def _types(value: Any) -> bytes:
    return _text(1, value)


def _schema_item(value: Any) -> bytes:
    """Encode a schema of a list's items, or the schema of an answer."""
    return _field(1, _schema(value))


def _operation(value: Any) -> bytes:
    return _members(_OPERATION, value, extensions=13)


def _path(value: Any) -> bytes:
    return _members(_PATH, value)


def _parameter(value: Any) -> bytes:
    """Encode a parameter. Its message depends on its place, in two steps."""
    place = value["in"]
    if place == "body":
        return _field(1, _field(1, _members(_BODY, value)))
    kind, fields = (4, _IN_PATH) if place == "path" else (3, _IN_QUERY)
    return _field(1, _field(2, _field(kind, _members(fields, value))))


def _response(value: Any) -> bytes:
    return _field(1, _members(_RESPONSE, value))


_TEXTS = _each(_text)
_PARAMETERS = _each(_one(_parameter))
_SCHEMA: _Fields = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _one(_any)),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _flag),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _flag),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _flag),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _TEXTS),
    "enum": (20, _each(_one(_any))),
    "additionalProperties": (21, _one(_additional)),
    "type": (22, _one(_types)),
    "items": (23, _one(_schema_item)),
    "properties": (25, _named(_schema)),
}
_BODY: _Fields = {"name": (2, _text), "in": (3, _text), "required": (4, _flag), "schema": (5, _one(_schema))}
_IN_PATH: _Fields = {"required": (1, _flag), "in": (2, _text), "name": (4, _text), "type": (5, _text)}
_IN_QUERY: _Fields = {"required": (1, _flag), "in": (2, _text), "name": (4, _text), "type": (6, _text)}
_RESPONSE: _Fields = {"description": (1, _text), "schema": (2, _one(_schema_item))}
_OPERATION: _Fields = {
    "operationId": (5, _text),
    "produces": (6, _TEXTS),
    "consumes": (7, _TEXTS),
    "parameters": (8, _PARAMETERS),
    "responses": (9, _named(_response)),
}
_PATH: _Fields = {
    "get": (2, _one(_operation)),
    "put": (3, _one(_operation)),
    "post": (4, _one(_operation)),
    "delete": (5, _one(_operation)),
    "patch": (8, _one(_operation)),
    "parameters": (9, _PARAMETERS),
}
_INFO: _Fields = {"title": (1, _text), "version": (2, _text)}
_DOCUMENT: _Fields = {
    "swagger": (1, _text),
    "info": (2, _one(lambda value: _members(_INFO, value))),
    "paths": (8, _named(_path, number=2)),
    "definitions": (9, _named(_schema)),
}
