"""The lookup of an element: in a map by its key, in a list by its index."""

import math
from collections.abc import Callable
from typing import Final

from devlet.cel.texts import key_text
from devlet.cel.types import type_name
from devlet.cel.values import INT_MAX, INT_MIN, CelError, Uint, Value

KEYS: Final = frozenset((str, int, Uint, bool, float))
"""The types that a key or an index may have."""

ABSENT: Final = object()
"""The result of `find` if there is no element; never a value of an expression."""


def find(container: Value, key: Value) -> Value:
    """Return the element or ABSENT. A map with defaults has every key here, though not for `in`."""
    if isinstance(container, dict):
        return container[key] if has_key(container, key) else _default(container, key)
    if isinstance(container, list | tuple):
        position = list_index(key)
        return container[position] if 0 <= position < len(container) else ABSENT
    return ABSENT


def list_index(key: Value) -> int:
    """Return the index for an integer of any type; it may be out of range."""
    if type(key) is int:
        return key
    if type(key) is float:
        if math.isfinite(key) and key == int(key) and INT_MIN < key < INT_MAX:
            return int(key)
        raise CelError(f"unsupported index value {key_text(key)} in list")
    if type(key) is Uint:
        if key <= INT_MAX:
            return int(key)
        raise CelError(f"unsupported index value {key_text(key)} in list")
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


def has_key(container: dict[Value, Value], key: Value) -> bool:
    """Return whether the key exists. Python treats 1, 1.0 and True as one key, CEL does not: the type of the stored key
    decides."""
    kind = type(key)
    if kind is str:
        return key in container
    if kind not in KEYS:
        return False
    return key in container and any(stored == key and _same_key(type(stored), key) for stored in container)


def _same_key(stored: type, key: Value) -> bool:
    kind = type(key)
    if bool in (stored, kind):
        return stored is kind
    return stored is not float or kind is float


def _default(container: dict[Value, Value], key: Value) -> Value:
    missing: Callable[[dict[Value, Value], Value], Value] | None = getattr(type(container), "__missing__", None)
    return missing(container, key) if missing else ABSENT
