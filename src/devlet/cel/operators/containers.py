"""Operators of lists, maps, optionals and objects: size, membership, index and field access."""

from devlet.cel.operators.equality import not_equal
from devlet.cel.operators.errors import NO_OVERLOAD, unsupported
from devlet.cel.operators.lookup import ABSENT, KEYS, find, has_key
from devlet.cel.reference_types import go_type
from devlet.cel.texts import key_text
from devlet.cel.values import NONE, CelError, Optional, Value


def size(value: Value) -> int:
    """Return the number of code points of a string, or of bytes, elements or entries."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    raise unsupported("size", value)


def contains(element: Value, container: Value) -> bool:
    """Implement `element in container`. A value that cannot be compared is not in it."""
    if isinstance(container, dict):
        return has_key(container, element)
    if isinstance(container, list | tuple):
        return any(not not_equal(element, other) for other in container)
    raise CelError(NO_OVERLOAD)


def index(container: Value, key: Value) -> Value:
    """Implement `container[key]`; for an optional the result is an optional."""
    if type(key) not in KEYS:
        raise CelError(f"invalid qualifier type: {go_type(key)}")
    if type(container) is Optional:
        return optional_index(container, key)
    value = find(container, key)
    if value is ABSENT:
        raise CelError(f"{_what_is_missing(container)}: {key_text(key)}")
    return value


def optional_index(container: Value, key: Value) -> Optional:
    """Implement `container[?key]`."""
    if type(container) is Optional:
        return optional_index(container.value, key) if container.has_value else NONE
    if type(key) not in KEYS:
        raise CelError(f"invalid qualifier type: {go_type(key)}")
    value = find(container, key)
    return NONE if value is ABSENT else Optional(value)


def select(container: Value, field: str, attribute: str = "") -> Value:
    """Implement `container.field`; `attribute` is the field's name in Python if the container is a host object."""
    if attribute and not isinstance(container, dict | Optional):
        return getattr(container, attribute)
    if type(container) is Optional:
        return optional_select(container, field, attribute)
    return index(container, field)


def optional_select(container: Value, field: str, attribute: str = "") -> Optional:
    """Implement `container.?field`."""
    if type(container) is Optional:
        return optional_select(container.value, field, attribute) if container.has_value else NONE
    if attribute and not isinstance(container, dict):
        return Optional(getattr(container, attribute))
    return optional_index(container, field)


def has(container: Value, field: str, attribute: str = "") -> bool:
    """Implement `has(container.field)`. For values without fields it is false; only for a list is it an error."""
    return optional_select(container, field, attribute).has_value


def _what_is_missing(container: Value) -> str:
    return "index out of bounds" if isinstance(container, list | tuple) else "no such key"
