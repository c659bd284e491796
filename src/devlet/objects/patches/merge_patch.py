"""JSON merge patch (RFC 7386): objects merge key by key, null removes, anything else replaces.

Lists are replaced as a whole: a merge patch cannot change one element. Nulls inside a list stay.
"""

from typing import Any

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.patches.limits import check_depth


def apply(document: Document, patch: Any) -> Document:
    """Return the document after the patch. The patch must be an object, because any other value would replace the whole
    document."""
    if not isinstance(patch, dict):
        raise BadRequest("a merge patch for an object must be an object")
    check_depth(patch, "the merge patch")
    return _merged(document, patch)


def _merged(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key), value)
        else:
            result[key] = value
    return result
