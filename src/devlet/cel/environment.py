"""The variables, types, functions and macros that an expression may use in each release of Kubernetes.

New expressions may use what the release supports. Stored expressions may use everything, or a downgrade would break
them. Hosts add their own variables and object types with `extended`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Final

from devlet.cel import macros, protobuf
from devlet.cel.functions import Function, Library, Overload, Range
from devlet.cel.library import (
    authorizer,
    cidr,
    ip,
    kube_lists,
    lists,
    named_formats,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    standard,
    strings,
    two_variables,
    url,
)
from devlet.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    LIST,
    MAP,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    A,
    B,
    Kind,
    Type,
    list_of,
    map_of,
    object_type,
    type_of,
)
from devlet.cel.values import Constant

Path = tuple[str, ...]
"""The path from a variable: its name, fields, and `@items`, `@keys` or `@values` of lists and maps."""


@dataclass(frozen=True, slots=True)
class ObjectField:
    """A field of a host object: its type, and the attribute that holds it in Python."""

    type: Type
    attribute: str


@dataclass(frozen=True, slots=True)
class Name:
    """The meaning of an identifier. A constant or a type has a value; a type without one exists for the checker
    only."""

    name: str
    type: Type
    value: Constant | Type = None


def _no_sizes(path: Path) -> Range | None:
    return None


@dataclass(frozen=True)
class Environment:
    """An environment. `objects` are the types with fields, by name; `sizes` returns the host's size limit for the value
    at a path."""

    variables: Mapping[str, Type] = field(default_factory=dict)
    objects: Mapping[str, Mapping[str, ObjectField]] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    macros: frozenset[str] = frozenset()
    type_names: Mapping[str, Type] = field(default_factory=dict)
    sizes: Callable[[Path], Range | None] = _no_sizes
    homogeneous_literals: bool = True
    cross_type_numeric: bool = True
    validate_literals: bool = True
    validate_formats: bool = True

    def extended(
        self,
        *,
        variables: Mapping[str, Type] | None = None,
        objects: Mapping[str, Mapping[str, ObjectField]] | None = None,
        libraries: Iterable[Library] = (),
        sizes: Callable[[Path], Range | None] | None = None,
    ) -> "Environment":
        added = tuple(libraries)
        return replace(
            self,
            variables={**self.variables, **(variables or {})},
            objects={**self.objects, **(objects or {})},
            functions=_merged(self.functions, added),
            macros=self.macros.union(*(library.macros for library in added)),
            type_names={**self.type_names, **{t.type_name: t for library in added for t in library.types}},
            sizes=sizes or self.sizes,
        )

    @cached_property
    def names(self) -> Mapping[str, Name]:
        """Return every identifier outside of comprehensions. A variable hides a type of the same name."""
        found: dict[str, Name] = {n: Name(n, INT, value) for n, value in protobuf.ENUM_VALUES.items()}
        found |= {n: Name(n, type_of(t), t) for n, t in self.type_names.items()}
        found |= {n: Name(n, type_of(t), t) for n, t in protobuf.MESSAGES.items()}
        found |= {n: Name(n, type_of(t)) for n, t in self._object_types.items()}
        found |= {n: Name(n, type_of(t), value) for n, (t, value) in _STANDARD_TYPES.items()}
        return found | {n: Name(n, t) for n, t in self.variables.items()}

    @cached_property
    def _object_types(self) -> Mapping[str, Type]:
        """Return the names that come with host objects, including those of fields that hold maps or lists."""
        if not self.objects:
            return {}
        found = {"duration": DURATION, "timestamp": TIMESTAMP}
        for name, fields in self.objects.items():
            found[name] = object_type(name)
            found |= {f"{name}.{f}": o.type for f, o in fields.items() if o.type.kind in (Kind.LIST, Kind.MAP)}
        return found

    def has_fields(self, type_name: str) -> bool:
        """Return whether fields of this type can be selected. The type may still have none."""
        if type_name in self.objects or type_name in protobuf.FIELDS:
            return True
        return bool(self.objects) and (type_name in _STANDARD_TYPES or type_name in self._object_types)

    def field_type(self, type_name: str, field: str) -> Type | None:
        if own := self.objects.get(type_name, {}).get(field):
            return own.type
        if type_name in protobuf.FIELDS:
            return protobuf.FIELDS[type_name].get(field)
        t = MAP if type_name == "map" else self._object_types.get(type_name)
        return t.params[1] if t and t.kind is Kind.MAP else None

    @cached_property
    def longest_name(self) -> int:
        """Return the number of parts of the longest dotted name of an identifier or a function."""
        return max((name.count(".") + 1 for name in (*self.names, *self.functions)), default=1)


_STANDARD_TYPES: Final[Mapping[str, tuple[Type, Type]]] = {
    **{t.type_name: (t, t) for t in (BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, TYPE, UINT)},
    "list": (list_of(A), LIST),
    "map": (map_of(A, B), MAP),
}
"""Static type and value. For lists and maps only the container's type is known, not that of the elements."""


def _merged(functions: Mapping[str, Function], libraries: Iterable[Library]) -> Mapping[str, Function]:
    """Merge functions. Overloads of the same function are combined, in the order of the libraries."""
    merged = dict(functions)
    for function in (f for library in libraries for f in library.functions):
        before = merged.get(function.name)
        merged[function.name] = _joined(before, function) if before else function
    return merged


def _joined(old: Function, new: Function) -> Function:
    overloads: dict[str, Overload] = {o.id: o for o in (*old.overloads, *new.overloads)}
    return Function(old.name, tuple(overloads.values()), old.dispatch or new.dispatch)


BINDINGS: Final = Library("cel.lib.ext.cel.bindings", (), macros=tuple(macros.BINDINGS))
"""`cel.bind`. No release supports it for all hosts, but device selectors have it."""


@dataclass(frozen=True, slots=True)
class _Since:
    """The release that added a library, and the release that replaced it with a newer version."""

    minor: int
    library: Library
    until: int = 1_000

    def __contains__(self, minor: int) -> bool:
        return self.minor <= minor < self.until


_LIBRARIES: Final = (
    _Since(0, standard.LIBRARY),
    _Since(0, url.LIBRARY),
    _Since(0, regex.LIBRARY),
    _Since(0, kube_lists.LIBRARY),
    _Since(27, authorizer.LIBRARY),
    _Since(28, optionals.LIBRARY),
    _Since(28, quantity.LIBRARY),
    _Since(0, strings.STRINGS_0, until=29),
    _Since(29, strings.STRINGS_2),
    _Since(29, sets.LIBRARY),
    _Since(30, ip.LIBRARY),
    _Since(30, cidr.LIBRARY),
    _Since(31, named_formats.LIBRARY),
    _Since(31, authorizer.SELECTORS),
    _Since(32, two_variables.LIBRARY),
    _Since(33, semver.LIBRARY),
    _Since(34, lists.LIBRARY),
)
"""Libraries in the reference's order, which matters: the first overload that fits decides some types."""


_NEWEST: Final = 999


@cache
def kubernetes(version: tuple[int, int], *, stored: bool) -> Environment:
    """Return the base of all environments of a Kubernetes release; for stored expressions it contains everything.

    No version is older than 1.23 and none is 2.0, so only the minor version counts.
    """
    minor = _NEWEST if stored else version[1]
    base = Environment(
        macros=macros.STANDARD,
        cross_type_numeric=minor >= 28,
        validate_literals=minor >= 29,
        validate_formats=minor >= 29,
    )
    return base.extended(libraries=[since.library for since in _LIBRARIES if minor in since])
