"""How a view is described: the fields of its documents, with their meanings, and the columns of its table.

The document, its OpenAPI schema, its table and the page docs/views.md all come from this description.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import NoneType
from typing import Annotated, Any, Generic, NamedTuple, NewType, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from devlet.objects.documents import Document
from devlet.objects.kinds import VIEWS_GROUP, Kind
from devlet.objects.subdocuments import at, name, number, text
from devlet.objects.table_cells import NAME, NONE, Cell, Column, Printer, none_if_empty, since

__all__ = ["API_VERSION", "NAMED", "Part", "Shown", "Time", "View", "some"]

API_VERSION = f"{VIEWS_GROUP}/v1alpha1"
SHOWN = 8  # items of a list in a cell; there may be hundreds
Time = NewType("Time", str)

_SCHEMAS: dict[object, Document] = {
    str: {"type": "string"},
    Time: {"type": "string", "format": "date-time"},
    int: {"type": "integer", "format": "int64"},
    bool: {"type": "boolean"},
    dict[str, str]: {"type": "object", "additionalProperties": {"type": "string"}},
    dict[str, Any]: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join({"id": "ID", "uid": "UID"}.get(word, word.capitalize()) for word in rest)


class Part(Struct, frozen=True, omit_defaults=True, rename=_camel):
    """An object in a document. The annotation of a field says what it means; a field that is None is absent."""


class Shown(NamedTuple):
    """A column. `value` is the path of a field, such as `status.state`, or a function of the document and the time."""

    title: str
    value: str | Callable[[Document, datetime], Cell]
    meaning: str = ""  # that of the field if it is empty
    wide: bool = False
    type: str = "string"
    format: str = ""


NAMED = Shown(NAME.name, lambda document, now: name(document), NAME.description, format=NAME.format)

Spec = TypeVar("Spec", bound=Part)
Status = TypeVar("Status", bound=Part)


@dataclass(frozen=True)
class View(Generic[Spec, Status]):
    """A kind of document that a node makes when it is read. `selectable` are the fields for field selectors."""

    kind: Kind
    meaning: str
    spec: type[Spec]
    status: type[Status]
    columns: tuple[Shown, ...]
    selectable: tuple[str, ...]
    verbs: tuple[str, ...] = ("get", "list")

    def document(self, metadata: Document, spec: Spec, status: Status) -> Document:
        parts = {"spec": msgspec.to_builtins(spec), "status": msgspec.to_builtins(status)}
        return {"kind": self.kind.kind, "apiVersion": API_VERSION, "metadata": metadata, **parts}

    @cached_property
    def schema(self) -> Document:
        """The OpenAPI schema of the document, without its metadata."""
        properties = {"spec": _object(self.spec), "status": _object(self.status)}
        return {"type": "object", "description": self.meaning, "properties": properties}

    @cached_property
    def printer(self) -> Printer:
        values = [self._value(shown) for shown in self.columns]
        columns = tuple(
            Column(shown.title, shown.type, shown.format, int(shown.wide), self.meaning_of(shown))
            for shown in self.columns
        )
        return Printer(columns, lambda document, now: [value(document, now) for value in values])

    def meaning_of(self, shown: Shown) -> str:
        if shown.meaning or not isinstance(shown.value, str):
            return shown.meaning
        return self._field(shown.value)[1]

    def _value(self, shown: Shown) -> Callable[[Document, datetime], Cell]:
        if not isinstance(shown.value, str):
            return shown.value
        path, type_ = shown.value.split("."), self._field(shown.value)[0]
        if type_ is Time:
            return lambda document, now: since(at(document, *path), now)
        if type_ is str:
            return lambda document, now: none_if_empty(text(document, *path))
        if shown.type == "integer":
            return lambda document, now: number(document, *path)
        return lambda document, now: _listed(at(document, *path))

    def _field(self, path: str) -> tuple[object, str]:
        part, _, name = path.partition(".")
        return _fields(self.spec if part == "spec" else self.status)[name]


def some(names: Sequence[str]) -> str:
    """Return the first few of these names, each once."""
    unique = list(dict.fromkeys(filter(None, names)))
    return ",".join(unique[:SHOWN]) + (f" + {len(unique) - SHOWN} more..." if len(unique) > SHOWN else "")


def _listed(value: object) -> str:
    """Return a list or a number; `<none>` if it is empty or absent."""
    if isinstance(value, list):
        return none_if_empty(",".join(map(str, value)))
    return str(value) if isinstance(value, int) else NONE


def _fields(part: type[Part]) -> dict[str, tuple[object, str]]:
    """Return the type and the meaning of each field, by its name in the document."""
    hints = get_type_hints(part, include_extras=True)
    return {
        name: _field(hints[attribute])
        for attribute, name in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True)
    }


def _field(hint: Any) -> tuple[object, str]:
    assert get_origin(hint) is Annotated, "a field of a view says what it means"
    type_, meaning = get_args(hint)
    options = [option for option in get_args(type_) if option is not NoneType]
    return (options[0] if NoneType in get_args(type_) else type_), meaning


def _object(part: type[Part]) -> Document:
    properties = {name: {**_schema(type_), "description": meaning} for name, (type_, meaning) in _fields(part).items()}
    return {"type": "object", "description": part.__doc__, "properties": properties}


def _schema(type_: Any) -> Document:
    if get_origin(type_) is list:
        return {"type": "array", "items": _schema(get_args(type_)[0])}
    return _SCHEMAS[type_] if type_ in _SCHEMAS else _object(type_)
