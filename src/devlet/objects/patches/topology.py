"""How managers can share a value: as one piece, by field, by key or by member.

Server-side apply looks this up for every value. The schema answers for the kinds it has. Everything else (custom kinds,
unknown fields, embedded objects) is divided by field all the way down, with lists as one piece.
"""

from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from typing import Any

import msgspec

from devlet.objects.schema.messages import Field, Message, message

_OBJECT_META = "k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta"

# Keys of list elements that have a meaning when they are absent.
_KEY_DEFAULTS: Mapping[str, Any] = {"protocol": "TCP"}

_UNTYPED_DEPTH = 64  # untyped values below this depth are one piece

_encode = msgspec.json.Encoder(order="sorted").encode


class Division(Enum):
    ATOMIC = auto()  # owned as one piece
    STRUCT = auto()  # an object with known fields
    MAP = auto()  # an object with free keys
    KEYED = auto()  # a list of objects that are identified by some of their fields
    SET = auto()  # a list of distinct values
    UNTYPED = auto()  # objects are treated as MAP, everything else as ATOMIC


class Topology:
    """The division of one value and of everything below it."""

    __slots__ = ("_children", "_element", "_message", "division", "has_fields", "implicit", "keys", "splits_objects")

    def __init__(
        self,
        division: Division,
        *,
        message: Message | None = None,
        element: "Topology | None" = None,
        keys: tuple[str, ...] = (),
        implicit: bool = False,
    ) -> None:
        self.division = division
        self.has_fields = division is Division.STRUCT
        self.splits_objects = division in (Division.STRUCT, Division.MAP, Division.UNTYPED)
        self.keys = keys
        self.implicit = implicit  # fields that count as present in an object that does not set them
        self._message = message
        self._element = element
        self._children: dict[str, Topology | None] = {}

    @property
    def element(self) -> "Topology":
        return self._element or UNTYPED

    def child(self, name: str) -> "Topology | None":
        """Return the topology of an object's field; None if the field does not exist."""
        if not self.has_fields:
            return self.element
        if name not in self._children:
            if self._message is None:
                return self.element
            field = self._message.properties.get(name)
            # Names come from clients: caching unknown names would use unlimited memory.
            if field is None:
                return None
            self._children[name] = _of_field(field)
        return self._children[name]

    def below(self, name: str) -> "Topology":
        """Return the topology of a field that the kind may not know."""
        return self._children.get(name) or self.child(name) or UNTYPED

    def is_field(self, name: str) -> bool:
        """Return whether the kind has such a field, as opposed to a free key."""
        return self.has_fields and (name in self._children or self.child(name) is not None)

    def split(self, value: Any) -> "dict[str, tuple[Topology, Any]] | None":
        """Return the parts of a value by FieldsV1 path element; None if it is one piece.

        Null is an absent value, and a list whose elements cannot be identified is one piece.
        """
        if isinstance(value, dict):
            if self.splits_objects:
                return {"f:" + k: (self.below(k), v) for k, v in value.items() if v is not None}
        elif isinstance(value, list) and self.division in (Division.KEYED, Division.SET):
            return self._split_list(value)
        return None

    def _split_list(self, items: list[Any]) -> "dict[str, tuple[Topology, Any]] | None":
        parts = {}
        for item in items:
            name = self.name(item)
            if name is None or name in parts:
                return None
            parts[name] = (self.element, item)
        return parts

    def name(self, item: Any) -> str | None:
        """Return the path element for an element of a KEYED or SET list; None if it has none of the keys."""
        if self.division is Division.SET:
            return "v:" + _encode(item).decode()
        if not isinstance(item, dict):
            return None
        found = {key: value for key in self.keys if (value := item.get(key, _KEY_DEFAULTS.get(key))) is not None}
        return "k:" + _encode(found).decode() if found else None


def of(message: Message | None) -> Topology:
    """Return the topology of a whole object."""
    return _untyped_object() if message is None else _of_message(message)


@cache
def _of_message(message: Message) -> Topology:
    return Topology(Division.STRUCT, message=message, implicit=True)


@cache
def _untyped_object() -> Topology:
    root = Topology(Division.STRUCT, implicit=True)
    root._children["metadata"] = Topology(Division.STRUCT, message=message(_OBJECT_META), implicit=True)
    return root


def _of_field(field: Field) -> Topology:
    if field.label == "single":
        return _of_value(field, implicit=not field.pointer)
    implicit = not field.omitempty
    if field.label == "map":
        if field.map_type == "atomic":
            return _ATOMIC
        return Topology(Division.MAP, element=_of_value(field), implicit=implicit)
    division, keys = _of_list(field)
    if division is Division.ATOMIC:
        return _ATOMIC
    return Topology(division, element=_of_value(field), keys=keys, implicit=implicit)


def _of_list(field: Field) -> tuple[Division, tuple[str, ...]]:
    """Return the division of a list. Lists without a declared type follow their strategic merge patch strategy."""
    by_strategy = not field.list_type and "merge" in field.patch_strategy
    if field.list_type == "map" or (by_strategy and field.patch_merge_key):
        return Division.KEYED, field.list_map_keys or (field.patch_merge_key,)
    if field.list_type == "set" or by_strategy:
        return Division.SET, ()
    return Division.ATOMIC, ()


def _of_value(field: Field, *, implicit: bool = False) -> Topology:
    if field.special == "rawextension":
        return UNTYPED
    if not field.is_message:
        return _ATOMIC
    message = field.message()
    if (field.map_type or message.map_type) == "atomic":
        return _ATOMIC
    return Topology(Division.STRUCT, message=message, implicit=implicit)


_ATOMIC = Topology(Division.ATOMIC)


def _untyped() -> Topology:
    below = _ATOMIC
    for _ in range(_UNTYPED_DEPTH):
        below = Topology(Division.UNTYPED, element=below)
    return below


UNTYPED = _untyped()
