"""A part of an API object without members that this devlet does not know: a newer server has more of them."""

from typing import Any

from devlet.objects.documents import Document
from devlet.objects.schema.messages import Field, Message

__all__ = ["known_members"]


def known_members(document: Document, message: Message) -> Document:
    return {
        key: _known(value, field)
        for key, value in document.items()
        if (field := message.properties.get(key)) is not None
    }


def _known(value: Any, field: Field) -> Any:
    if not field.is_message or value is None:
        return value
    match field.label, value:
        case "repeated", list():
            return [_part(each, field) for each in value]
        case "map", dict():
            return {key: _part(each, field) for key, each in value.items()}
    return _part(value, field)


def _part(value: Any, field: Field) -> Any:
    return known_members(value, field.message()) if isinstance(value, dict) else value
