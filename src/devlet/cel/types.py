"""Static types, and the run-time type of a value. A type is also a value: `type(1) == int`.

A type has two string forms. `describe(t)` is the form in the checker's error messages (`any`, `duration`, `null`),
`str(t)` the form of an expression's output type (`google.protobuf.Any`, `google.protobuf.Duration`, `null_type`).
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from devlet.cel.values import Duration, Optional, Timestamp, Uint
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.semver import Semver


class Kind(StrEnum):
    """The kinds of types. `ANY` and `DYN` both mean "known at run time only"; they print differently, and selectors may
    return ANY."""

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
    OPAQUE = "opaque"  # optional_type and library types such as kubernetes.Quantity
    OBJECT = "object"  # has fields, such as kubernetes.DRADevice
    PARAM = "param"  # a type variable in the signature of a function
    UNRESOLVED = "unresolved"  # a type variable while an expression is checked


@dataclass(frozen=True, slots=True)
class Type:
    """A type. `name` is for opaque, object and parameter types, `params` for those with parameters.

    `nullable` types represent protobuf wrappers such as `google.protobuf.Int64Value`.
    """

    kind: Kind
    name: str = ""
    params: "tuple[Type, ...]" = ()
    nullable: bool = field(default=False, compare=False)

    @property
    def type_name(self) -> str:
        """Return the name without parameters, as `type(x)` prints and compares it."""
        return self.name or ("error" if self.kind is Kind.ERROR else self.kind.value)

    @property
    def is_dyn(self) -> bool:
        return self.kind is Kind.DYN or self.kind is Kind.ANY

    @property
    def is_variable(self) -> bool:
        return self.kind is Kind.UNRESOLVED or self.kind is Kind.PARAM

    def __str__(self) -> str:
        if self.is_variable:
            return f"<{self.name}>"
        return _declared(self) + (f"({', '.join(map(str, self.params))})" if self.params else "")


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


_IN_MESSAGES = {Kind.ANY: "any", Kind.DURATION: "duration", Kind.TIMESTAMP: "timestamp", Kind.NULL: "null"}


def describe(t: Type) -> str:
    """Format a type as the checker's messages do: `map(string, any)`, `kubernetes.Quantity`, `optional_type(int)`."""
    if t.kind is Kind.ERROR:
        return Kind.ERROR.value
    if short := _IN_MESSAGES.get(t.kind):
        return short
    if not t.params:
        return _declared(t)
    return f"{t.type_name}({', '.join(map(describe, t.params))})"


def _declared(t: Type) -> str:
    return f"wrapper({t.type_name})" if t.nullable else t.type_name


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    """Return the type inside an optional type, and whether it was optional."""
    if t.kind is Kind.OPAQUE and t.name == "optional_type" and t.params:
        return t.params[0], True
    return t, False


OPTIONAL: Final = opaque("optional_type")
LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
TYPE: Final = Type(Kind.TYPE)
QUANTITY: Final = object_type("kubernetes.Quantity")
SEMVER: Final = object_type("kubernetes.Semver")

_BY_CLASS: Final[dict[type, Type]] = {
    type(None): NULL,
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    Duration: DURATION,
    Timestamp: TIMESTAMP,
    list: LIST,
    tuple: LIST,
    dict: MAP,
    Optional: OPTIONAL,
    Type: TYPE,
    Quantity: QUANTITY,
    Semver: SEMVER,
}


def runtime_type(value: Any) -> Type:
    """Return `type(value)`. Classes of library values have it in an attribute `cel_type`.

    All other classes are host objects, which are maps at run time, as in the reference.
    """
    if found := _BY_CLASS.get(type(value)):
        return found
    own = getattr(type(value), "cel_type", None)
    if isinstance(own, Type):
        return own
    return LIST if isinstance(value, list | tuple) else MAP


def type_name(value: Any) -> str:
    return runtime_type(value).type_name
