"""Long lists of messages, brought into shape in C: the devices of a slice are a thousand small objects.

From the schema each message gets a type that accepts only what needs no second look: no nulls, no unknown keys, no
member whose JSON form is special (other than quantities). A list that fits comes out exactly as `objects.shape` would
make it, several times faster; any other is refused without a reason, and left to `objects.shape`.
"""

from functools import cache, lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from devlet.objects.documents import Document
from devlet.objects.schema.leaves import Mismatch, quantity
from devlet.objects.schema.messages import Field, Message, is_always_written, keeps_zero

__all__ = ["WORTH_IT", "shaped"]

WORTH_IT = 8  # elements; making the types of a message takes as long as shaping a hundred of its values


class _Quantity(str):
    """In canonical form."""

    __slots__ = ()


_SCALARS: dict[str, Any] = {
    "string": str,
    "bool": bool,
    "int32": Annotated[int, Meta(ge=-(1 << 31), lt=1 << 31)],
    "int64": Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)],
    "quantity": _Quantity,
}
_ZERO: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0}


def shaped(values: list[Any], message: Message) -> list[Document] | None:
    """The messages in shape; None if one of them is unusual. What is returned shares no list or dict with `values`."""
    if (wanted := _list_type(message)) is None:
        return None
    try:
        typed = msgspec.convert(values, wanted, dec_hook=_read)
    except (msgspec.ValidationError, Mismatch, RecursionError):
        return None
    made: list[Document] = msgspec.to_builtins(typed, enc_hook=str)
    return made


def _read(_: type, value: Any) -> _Quantity:
    """What cannot be hashed is a TypeError, of which the caller makes a ValidationError."""
    return _canonical(value)


@lru_cache(4096, typed=True)
def _canonical(value: Any) -> _Quantity:
    return _Quantity(quantity(value, []))


@cache
def _list_type(message: Message) -> Any:
    element: Any = _type(message)
    return element and list[element]


@cache
def _type(message: Message) -> type[msgspec.Struct] | None:
    """None if every value is unusual. No message of the schema contains itself."""
    members = []
    for i, (key, field) in enumerate(message.properties.items()):
        type_ = _member_type(field)
        if type_ is not None:
            members.append((f"_{i}", *_with_default(key, field, type_)))
        elif is_always_written(field):
            return None
    return msgspec.defstruct("Shaped", members, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False)


def _with_default(key: str, field: Field, type_: Any) -> tuple[Any, Any]:
    if is_always_written(field):  # one that is not there is unusual
        return type_, msgspec.field(name=key)
    if keeps_zero(field) or field.label != "single":
        return type_ | UnsetType, msgspec.field(name=key, default=UNSET)
    return type_, msgspec.field(name=key, default=_ZERO[field.type])


def _member_type(field: Field) -> Any:
    """None if such a member is unusual."""
    value: Any = _value_type(field)
    if value is None or (field.label == "single" and field.type not in _ZERO and not keeps_zero(field)):
        return None
    if field.label == "single":
        return value
    many = list[value] if field.label == "repeated" else dict[str, value]
    return many if keeps_zero(field) else Annotated[many, Meta(min_length=1)]  # an empty one would be left out


def _value_type(field: Field) -> Any:
    return _type(field.message()) if field.is_message else _SCALARS.get(field.special or field.type)
