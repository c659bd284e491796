"""Static types, and the run-time type of a value. A type is a value too: `type(1) == int`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """`ANY` and `DYN` both mean "known at run time only"; they print differently and selectors may end in ANY."""

    NULL = "null_type"
    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    DURATION = "google.protobuf.Duration"
    TIMESTAMP = "google.protobuf.Timestamp"
    DYN = "dyn"
    ANY = "google.protobuf.Any"
    ERROR = "!error!"
    LIST = "list"
    MAP = "map"
    TYPE = "type"
    OPAQUE = "opaque"  # optional_type and the types of libraries, such as kubernetes.Quantity
    OBJECT = "object"  # has fields, such as kubernetes.DRADevice
    PARAM = "param"  # a type variable in the signature of a function
    UNRESOLVED = "unresolved"  # a type variable while an expression is checked


@dataclass(frozen=True, slots=True)
class Type:
    """`name` is for opaque, object and parameter types, `params` for those with parameters."""

    kind: Kind
    name: str = ""
    params: "tuple[Type, ...]" = ()


NULL: Final = Type(Kind.NULL)
BOOL: Final = Type(Kind.BOOL)
INT: Final = Type(Kind.INT)
UINT: Final = Type(Kind.UINT)
DOUBLE: Final = Type(Kind.DOUBLE)
STRING: Final = Type(Kind.STRING)
BYTES: Final = Type(Kind.BYTES)
DURATION: Final = Type(Kind.DURATION)
TIMESTAMP: Final = Type(Kind.TIMESTAMP)
DYN: Final = Type(Kind.DYN)
ANY: Final = Type(Kind.ANY)
ERROR: Final = Type(Kind.ERROR)

A: Final = Type(Kind.PARAM, "A")
B: Final = Type(Kind.PARAM, "B")


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, params=(element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, params=(key, value))


def type_of(inner: Type) -> Type:
    return Type(Kind.TYPE, params=(inner,))


def opaque(name: str, *params: Type) -> Type:
    return Type(Kind.OPAQUE, name, params)


def optional_of(inner: Type) -> Type:
    return opaque("optional_type", inner)


def object_type(name: str) -> Type:
    return Type(Kind.OBJECT, name)
