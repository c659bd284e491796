"""Read and fill in fields of documents that have not been validated.

Null is the same as absent, and so is a value of the wrong type for a reader. The functions that fill in fields leave
such a value alone: validation reports it.

Commands import this module and must start quickly, so it imports nothing that takes long to load.
"""

from typing import Any

__all__ = [
    "Document",
    "at",
    "ensure",
    "fill",
    "fill_empty",
    "is_empty",
    "mapping",
    "mappings",
    "metadata",
    "name",
    "number",
    "text",
    "texts",
    "values",
]

Document = dict[str, Any]  # as in `documents`, which takes long to load


def at(document: Any, *path: str) -> Any:
    """Return the value at a path; None if there is none."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def mapping(document: Any, *path: str) -> Document | None:
    """Return the object at a path; None if there is none."""
    value = at(document, *path)
    return value if isinstance(value, dict) else None


def mappings(document: Any, *path: str) -> list[Document]:
    """Return the objects in the list at a path."""
    value = at(document, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def values(document: Any, *path: str) -> list[Document]:
    """Return the objects that are values of the map at a path."""
    found = mapping(document, *path) or {}
    return [value for value in found.values() if isinstance(value, dict)]


def text(document: Any, *path: str) -> str:
    """Return the string at a path; an empty one if there is none."""
    value = at(document, *path)
    return value if isinstance(value, str) else ""


def texts(document: Any, *path: str) -> list[str]:
    """Return the strings in the list at a path."""
    value = at(document, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def number(document: Any, *path: str) -> int:
    """Return the integer at a path; 0 if there is none."""
    value = at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def metadata(document: Any) -> Document:
    """Return the metadata of an object, empty if there is none."""
    return mapping(document, "metadata") or {}


def name(document: Any) -> str:
    """Return the name of an object; an empty string if it has none."""
    return text(document, "metadata", "name")


def ensure(parent: Document, key: str) -> Document:
    """Return the object at `key`, and add one if it is absent.

    For a value of another type, return an object that is not part of the document."""
    if parent.get(key) is None:
        parent[key] = {}
    found = parent[key]
    return found if isinstance(found, dict) else {}


def fill(parent: Document, key: str, default: Any) -> None:
    """Set a field that is absent or null."""
    if parent.get(key) is None:
        parent[key] = default


def fill_empty(parent: Document, key: str, default: Any) -> None:
    """Set a field that is absent, null, "" or 0."""
    if is_empty(parent.get(key)):
        parent[key] = default


def is_empty(value: Any) -> bool:
    """Return True for null, "" and 0, which an unset string or number has. False and [] are values."""
    return value is None or (value in ("", 0) and value is not False)
