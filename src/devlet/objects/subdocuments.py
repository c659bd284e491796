"""Reaching into documents whose shape nobody has checked yet.

Null is the same as absent, and a value of the wrong shape is left alone: saying that it is wrong is the
business of validation, not of those who fill in or move fields.
"""

from typing import Any

from devlet.objects.documents import Document

__all__ = ["ensure", "fill", "fill_empty", "is_empty", "mapping", "mappings", "values"]


def mapping(parent: Document, key: str) -> Document | None:
    """The object at `key`, if there is one."""
    value = parent.get(key)
    return value if isinstance(value, dict) else None


def mappings(parent: Document, key: str) -> list[Document]:
    """The objects in the list at `key`; none if there is no such list."""
    value = parent.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def values(parent: Document, key: str) -> list[Document]:
    """The objects that are values of the map at `key`."""
    found = mapping(parent, key) or {}
    return [value for value in found.values() if isinstance(value, dict)]


def ensure(parent: Document, key: str) -> Document:
    """The object at `key`, put there if absent. For a value of another shape, an object that belongs to nobody."""
    if parent.get(key) is None:
        parent[key] = {}
    found = parent[key]
    return found if isinstance(found, dict) else {}


def fill(parent: Document, key: str, default: Any) -> None:
    """Set a field that can tell "unset" from its zero value."""
    if parent.get(key) is None:
        parent[key] = default


def fill_empty(parent: Document, key: str, default: Any) -> None:
    """Set a field for which "" or 0 means "unset"."""
    if is_empty(parent.get(key)):
        parent[key] = default


def is_empty(value: Any) -> bool:
    """Null, "" or 0: what a plain string or number holds when it was never set. False and [] are values."""
    return value is None or (value in ("", 0) and value is not False)
