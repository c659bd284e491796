"""Shape long lists of messages in C: the devices of a slice are a thousand small objects.

Each message of the schema gets a msgspec type that accepts only simple values: no nulls, no unknown keys, no field with
a special JSON form (other than quantities). A list that fits is converted exactly as `objects.schema.shape` would do
it, but several times faster. Any other list is rejected without a reason and left to `objects.schema.shape`.
"""

from functools import cache, lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from devlet.objects.documents import Document
from devlet.objects.schema.leaves import Mismatch, quantity
from devlet.objects.schema.messages import Field, Message, is_always_written, keeps_zero

__all__ = ["WORTH_IT", "shaped"]

WORTH_IT = 8  # elements; creating the types of a message takes as long as shaping a hundred of its values


class _Quantity(str):
    """A quantity in canonical form."""

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
    """Return the messages in shape; None if one of them is not simple. The result shares no list or dict with
    `values`."""
    if (wanted := _list_type(message)) is None:
        return None
    try:
        typed = msgspec.convert(values, wanted, dec_hook=_read)
    except (msgspec.ValidationError, Mismatch, RecursionError):
        return None
    made: list[Document] = msgspec.to_builtins(typed, enc_hook=str)
    return made


def _read(_: type, value: Any) -> _Quantity:
    """Read a quantity. An unhashable value raises TypeError, which msgspec turns into a ValidationError."""
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
    """Return the type; None if no value of the message is simple. No message of the schema contains itself."""
    members = []
    for i, (key, field) in enumerate(message.properties.items()):
        type_ = _member_type(field)
        if type_ is not None:
            members.append((f"_{i}", *_with_default(key, field, type_)))
        elif is_always_written(field):
            return None
    return msgspec.defstruct("Shaped", members, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False)


def _with_default(key: str, field: Field, type_: Any) -> tuple[Any, Any]:
    if is_always_written(field):  # a missing field is left to the slow path
        return type_, msgspec.field(name=key)
    if keeps_zero(field) or field.label != "single":
        return type_ | UnsetType, msgspec.field(name=key, default=UNSET)
    return type_, msgspec.field(name=key, default=_ZERO[field.type])


def _member_type(field: Field) -> Any:
    """Return the type of a field; None if its values are never simple."""
    value: Any = _value_type(field)
    if value is None or (field.label == "single" and field.type not in _ZERO and not keeps_zero(field)):
        return None
    if field.label == "single":
        return value
    many = list[value] if field.label == "repeated" else dict[str, value]
    return many if keeps_zero(field) else Annotated[many, Meta(min_length=1)]  # an empty list would be left out


def _value_type(field: Field) -> Any:
    return _type(field.message()) if field.is_message else _SCALARS.get(field.special or field.type)
