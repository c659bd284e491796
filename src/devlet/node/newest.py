"""Which of two states of an object is the newer one: the answer to a write often comes before the watch shows it."""

from devlet.objects.documents import Document

__all__ = ["newest"]


def newest(known: Document | None, seen: Document) -> Document:
    """`seen`, unless `known` is newer. Versions are numbers that grow; if they are not, what was seen last counts."""
    if known is None:
        return seen
    one, other = _version(known), _version(seen)
    return known if one is not None and other is not None and one > other else seen


def _version(document: Document) -> int | None:
    text = document["metadata"].get("resourceVersion", "")
    return int(text) if text.isascii() and text.isdigit() else None
