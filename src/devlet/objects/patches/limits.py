"""Limits on patches, and the error for a valid patch that cannot be applied.

Every recursive function on documents in this package relies on `check_depth`; without it, Python's stack would
overflow.
"""

from typing import Any

from devlet.errors import BadRequest, InvalidInput

MAX_DEPTH = 100
MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024  # all "copy" operations of one JSON patch together


class PatchFailed(InvalidInput):
    """An operation of the patch does not fit the object as it is. The server responds with 422 instead of 400."""


def depth(value: Any, limit: int = MAX_DEPTH) -> int:
    """Return how deeply objects and lists are nested; counting stops above `limit`."""
    level = [value] if isinstance(value, (dict, list)) else []
    count = 0
    while level and count <= limit:
        count += 1
        level = [child for parent in level for child in _children(parent) if isinstance(child, (dict, list))]
    return count


def check_depth(value: Any, what: str) -> None:
    if depth(value) > MAX_DEPTH:
        raise BadRequest(f"{what} is nested more than {MAX_DEPTH} levels deep")


def _children(parent: Any) -> Any:
    return parent.values() if isinstance(parent, dict) else parent
