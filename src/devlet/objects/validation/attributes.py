"""Rules for device attributes: a map from qualified name to exactly one value, or one list of values.

A slice has up to a thousand attributes, so plain values are recognised first and paths are built only for others.
"""

from functools import lru_cache
from typing import Any

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, byte_length, invalid, name_errors, too_long
from devlet.objects.values.semver import is_semver

VALUE_MAX = 64

LISTS = frozenset(("ints", "bools", "strings", "versions"))
_SCALARS = ("int", "bool", "string", "version")


def check_keys(keys: Any, path: str, known: set[str]) -> Causes:
    """Check the names of attributes or capacity. The devices of a slice have the same names: `known` collects the valid
    ones."""
    for name in keys - known:
        if names.device_qualified_name(name):
            yield from name_errors(path, name, names.device_qualified_name)
        else:
            known.add(name)


def check(attributes: dict[str, Document], path: str) -> Causes:
    if not are_plain(attributes):
        for name, value in attributes.items():
            yield from _check_value(value, f"{path}[{name}]")


def count_values(attributes: dict[str, Document]) -> int:
    """Count the values: each list element counts, and any attribute that is not a list counts as one, even if it is
    empty."""
    return sum(_count(value) for value in attributes.values())


def has_lists(attributes: dict[str, Document]) -> bool:
    return not all(map(LISTS.isdisjoint, attributes.values()))


def _count(value: Document) -> int:
    return max(1, sum(len(value[kind]) for kind in LISTS if kind in value))


def are_plain(attributes: dict[str, Document]) -> bool:
    """Return whether all values are certainly valid and none is a list; others need a full check."""
    for value in attributes.values():
        if len(value) != 1:
            return False
        for kind, content in value.items():
            if kind == "int" or kind == "bool":
                continue
            if not isinstance(content, str) or len(content) > VALUE_MAX or not content.isascii():
                return False
            if kind != "string" and not (kind == "version" and _is_version(content)):
                return False
    return True


_is_version = lru_cache(1024)(is_semver)


def _check_value(value: Document, path: str) -> Causes:
    scalars = [kind for kind in _SCALARS if value.get(kind) is not None]
    lists = [kind for kind in sorted(LISTS) if value.get(kind) is not None]
    if len(scalars) + len(lists) != 1:
        given = {kind: value[kind] for kind in (*scalars, *lists)}
        yield invalid(path, given or "", "exactly one value must be specified")
    for kind in scalars:
        yield from _check_scalar(kind, value[kind], f"{path}.{kind}")
    for kind in lists:
        if not value[kind]:
            yield invalid(f"{path}.{kind}", [], "must not be empty if specified")
        for i, item in enumerate(value[kind]):
            yield from _check_scalar(kind[:-1], item, f"{path}.{kind}[{i}]")


def _check_scalar(kind: str, value: Any, path: str) -> Causes:
    if kind == "version" and not is_semver(value):
        yield invalid(path, value, "must be a string compatible with semver.org spec 2.0.0")
    if kind in ("string", "version") and byte_length(value) > VALUE_MAX:
        yield too_long(path, VALUE_MAX)
