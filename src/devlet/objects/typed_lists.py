"""Long lists of messages, brought into shape in C: the devices of a slice are a thousand small objects.

From the schema each message gets a type that accepts only what needs no second look: no nulls, no unknown keys, no
member whose JSON form is special (other than quantities). A list that fits comes out exactly as `objects.shape` would
make it, several times faster; any other is refused without a reason, and left to `objects.shape`.
"""

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from devlet.objects.documents import Document
from devlet.objects.leaves import Mismatch, quantity
from devlet.objects.omission import is_always_written, keeps_zero
from devlet.objects.schema import Field, Message

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
    try:
        typed = msgspec.convert(values, _list_type(message), dec_hook=_read)
    except (msgspec.ValidationError, Mismatch, RecursionError):
        return None
    made: list[Document] = msgspec.to_builtins(typed, enc_hook=str)
    return made


def _read(_: type, value: Any) -> _Quantity:
    return _Quantity(quantity(value, []))


@cache
def _list_type(message: Message) -> Any:
    return list[_type(message, ())]  # type: ignore[misc]  # made at run time


@cache
def _type(message: Message, within: tuple[Message, ...]) -> type[msgspec.Struct]:
    """`within` are the messages around this one: types that contain themselves are not made."""
    members = []
    for i, (key, field) in enumerate(message.properties.items()):
        if (type_ := _member_type(field, (*within, message))) is not None:
            members.append((f"_{i}", *_with_default(key, field, type_)))
    return msgspec.defstruct("Shaped", members, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False)


def _with_default(key: str, field: Field, type_: Any) -> tuple[Any, Any]:
    if is_always_written(field):  # one that is not there is unusual
        return type_, msgspec.field(name=key)
    if keeps_zero(field) or field.label != "single":
        return type_ | UnsetType, msgspec.field(name=key, default=UNSET)
    return type_, msgspec.field(name=key, default=_ZERO[field.type])


def _member_type(field: Field, within: tuple[Message, ...]) -> Any:
    """None if such a member is unusual."""
    value: Any = _value_type(field, within)
    if value is None or (field.label == "single" and field.type not in _ZERO and not keeps_zero(field)):
        return None
    if field.label == "single":
        return value
    many = list[value] if field.label == "repeated" else dict[str, value]
    return many if keeps_zero(field) else Annotated[many, Meta(min_length=1)]  # an empty one would be left out


def _value_type(field: Field, within: tuple[Message, ...]) -> Any:
    if not field.is_message:
        return _SCALARS.get(field.special or field.type)
    message = field.message()
    return None if message in within else _type(message, within)
