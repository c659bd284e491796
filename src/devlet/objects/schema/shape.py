"""The JSON shape of Kubernetes objects: the result of decoding and encoding a document with Go.

A field that is null is not set. Go decides for each field whether it is written although it is not set: a Pod always
has `status: {}`, an Event `firstTimestamp: null`. Unlike Go, devlet keeps unknown keys: they stay at their level, after
the known ones, and are reported.

Every write passes through here, so each message gets a `Plan` once, and a plan only looks at the keys that are
present.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

from msgspec import Struct

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.schema import leaves
from devlet.objects.schema.leaves import Convert, Mismatch, Unknown
from devlet.objects.schema.messages import Field, Message, is_always_written, keeps_zero, message_of
from devlet.objects.schema.typed_lists import WORTH_IT, shaped

__all__ = [
    "Conformed",
    "Plan",
    "conform",
    "conform_any",
    "conform_kind",
    "is_always_written",
    "keeps_zero",
    "plan",
]

MOST_UNKNOWN = 100  # more unknown keys are kept, but not listed


class Conformed(Struct, frozen=True):
    document: Document
    unknown: tuple[str, ...]  # paths, such as spec.containers[0].foo


def conform(document: Document, message: Message, base: Document | None = None) -> Conformed:
    """Return the document in the shape of the message. The result shares no list or dict with the document.

    `base` is in shape, and the document was made from it: lists and dicts that are the same objects at the same place
    are reused, including their unknown keys. Raises BadRequest if a value has the wrong type, with its path and the
    expected type.
    """
    unknown: Unknown = []
    try:
        made = plan(message).convert(document, unknown, base)
    except Mismatch as wrong:
        raise BadRequest(f"{_subject(message)}: {wrong.text()}") from None
    return Conformed(made, tuple(islice(_unknown_in(document, message, base), MOST_UNKNOWN)) if unknown else ())


def conform_kind(document: Document, api_version: str, kind: str) -> Document:
    """Return the document in the shape of a kind that is in the schema table. Raises the errors of `conform`."""
    message = message_of(api_version, kind)
    if message is None:
        raise BadRequest(f"{kind} in version {api_version} is not known")
    return conform(document, message).document


def conform_any(document: Document) -> Document:
    """Copy a document that has no message. Raises BadRequest if a value in it is not JSON or is nested too deeply."""
    kind = document["kind"]
    try:
        return {leaves.key(key): _anything_at(key, value) for key, value in document.items()}
    except Mismatch as wrong:
        raise BadRequest(f"{document['apiVersion']} {kind} cannot be handled as a {kind}: {wrong.text()}") from None


def _anything_at(key: str, value: Any) -> Any:
    try:
        return leaves.anything(value, [])
    except Mismatch as wrong:
        wrong.path.append(f".{key}")
        raise


def _subject(message: Message) -> str:
    *_, version, kind = message.name.split(".")
    return f'{kind} in version "{version}" cannot be handled as a {kind}'


# Rank, converter, whether a zero value is written, and the plan of a field that is a message.
_Member = tuple[int, Convert, bool, "Plan | None"]


class Plan:
    """How to bring the JSON form of one message into shape. Initialized on first use, because few messages are used."""

    def __init__(self, message: Message) -> None:
        self.name = message.name.rpartition(".")[2]
        self._message = message
        self._members: dict[str, _Member] = {}
        self._always: dict[str, Callable[[], Any]] = {}  # what is written for unset fields

    def _fill(self) -> dict[str, _Member]:
        members: dict[str, _Member] = {}
        if self._message.is_kind:
            members.update(kind=(0, leaves.string, False, None), apiVersion=(1, leaves.string, False, None))
        for rank, (key, field) in enumerate(self._message.properties.items(), start=2):
            below = plan(field.message()) if field.is_message and field.label == "single" else None
            members[key] = (rank, _convert(field), keeps_zero(field), below)
            if is_always_written(field):
                self._always[key] = _zero(field)
        self._members = members  # set last, because another thread may read it
        return members

    def convert(self, document: object, unknown: Unknown, base: Document | None = None) -> Document:
        if type(document) is not dict:
            raise Mismatch(document, self.name)
        members = self._members or self._fill()
        made: Document = {}
        strangers: Document = {}
        key, last, in_order = "", 0, True
        before: Any = None
        try:
            for key, value in document.items():
                if base is not None:
                    before = base.get(key)
                if key not in members:
                    strangers[leaves.key(key)] = leaves.anything(value, unknown)
                    if value is None or value is not before:
                        unknown.append(self.name)
                elif value is not None:
                    rank, convert, keep_zero, below = members[key]
                    if value is not before:
                        value = convert(value, unknown) if below is None else below.convert(value, unknown, before)
                    if value or (keep_zero and value is not None):  # a zero time is None
                        made[key] = value
                        if rank < last:
                            in_order = False
                        last = rank
        except Mismatch as wrong:
            wrong.path.append(f".{key}")
            raise
        if self._always or not in_order:
            made = self.complete(made, in_order=in_order)
        if strangers:
            made.update(strangers)
        return made

    def complete(self, made: Document, *, in_order: bool = True) -> Document:
        """Add the fields that are always written, and put all fields into the order of the schema."""
        members = self._members or self._fill()
        for key, zero in self._always.items():
            if key not in made:
                made[key] = zero()
                in_order = False
        return made if in_order else {key: made[key] for key in sorted(made, key=members.__getitem__)}


@cache
def plan(message: Message) -> Plan:
    return Plan(message)


def _zero(field: Field) -> Callable[[], Any]:
    """Return what is written for an unset field."""
    if field.label != "single" or field.pointer:
        return lambda: None
    return _zero_value(field)


def _zero_element(field: Field) -> Callable[[], Any]:
    """Return what is written for a null in a list or a map. Bytes go through protobuf, where null and empty are the
    same."""
    return str if field.type == "bytes" else _zero_value(field)


def _zero_value(field: Field) -> Callable[[], Any]:
    """Return what is written for an unset value."""
    if field.is_message:
        message = field.message()
        return lambda: plan(message).complete({})
    value = leaves.ZERO.get(field.special or field.type)
    return lambda: value


def _convert(field: Field) -> Convert:
    convert = plan(field.message()).convert if field.is_message else leaves.CONVERT[field.special or field.type]
    match field.label:
        case "repeated":
            one_by_one = leaves.list_of(convert, _zero_element(field), of_strings=field.type == "string")
            return _in_bulk(field.message(), one_by_one) if field.is_message else one_by_one
        case "map":
            return leaves.map_of(convert, _zero_element(field), of_strings=field.type == "string")
    return convert


def _in_bulk(message: Message, one_by_one: Convert) -> Convert:
    def convert_all(value: Any, unknown: Unknown) -> list[Any]:
        if isinstance(value, list) and len(value) >= WORTH_IT and (made := shaped(value, message)) is not None:
            return made
        return one_by_one(value, unknown)  # type: ignore[no-any-return]

    return convert_all


def _unknown_in(document: Document, message: Message, base: Document | None, path: str = "") -> Iterator[str]:
    for key, value in document.items():
        place = f"{path}.{key}" if path else key
        field = message.properties.get(key)
        before = None if base is None else base.get(key)
        if value is not None and value is before:
            continue
        if field is None:
            if not (message.is_kind and key in ("kind", "apiVersion")):
                yield place
        elif field.is_message and value is not None:
            for part, step in _values(value, field):
                yield from _unknown_in(part, field.message(), before if field.label == "single" else None, place + step)


def _values(value: Any, field: Field) -> list[tuple[Document, str]]:
    match field.label:
        case "repeated":
            return [(part, f"[{index}]") for index, part in enumerate(value) if part is not None]
        case "map":
            return [(part, f".{key}") for key, part in value.items() if part is not None]
    return [(value, "")]
