"""Causes with the reasons and texts of a Kubernetes API server, one function per reason.

Checks are generators that yield causes and receive the path of what they check. Building paths is expensive, so loops
over large maps look first and build a path only for an invalid item.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from devlet.errors import Cause
from devlet.objects.names import TOO_LONG, Rule

Causes = Iterator[Cause]

_OMITTED = "<value omitted>"


def shown(value: object) -> str:
    return msgspec.json.encode(value).decode()


def required(path: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", path)


def invalid(path: str, value: object, detail: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", path)


def invalid_omitted(path: str, detail: str) -> Cause:
    """Report an invalid value without showing it, because it may be large or secret."""
    return invalid(path, _OMITTED, detail)


def duplicate(path: str, value: object) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", path)


def not_supported(path: str, value: object, supported: Iterable[str]) -> Cause:
    known = ", ".join(map(shown, supported))
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {known}", path)


def not_found(path: str, value: object, detail: str = "") -> Cause:
    text = f"Not found: {shown(value)}"
    return Cause("FieldValueNotFound", f"{text}: {detail}" if detail else text, path)


def forbidden(path: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", path)


def too_many(path: str, count: int, limit: int) -> Cause:
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", path)


def too_long(path: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def name_errors(path: str, name: str, rule: Rule) -> Iterable[Cause]:
    """Return the errors of `rule` for a name. Nearly always there are none, so this is not a generator."""
    errors = rule(name)
    return [_name_error(path, name, error) for error in errors] if errors else ()


def _name_error(path: str, name: str, error: str) -> Cause:
    if error.startswith(TOO_LONG):
        return Cause("FieldValueTooLong", f"Too long: {error}", path)
    return invalid(path, name, error)


def required_name(path: str, name: str, rule: Rule) -> Iterable[Cause]:
    """Check a name like `name_errors`, but report a missing name as "Required value"."""
    return name_errors(path, name, rule) if name else (required(path),)


def duplicates(path: str, keys: Sequence[Any]) -> Iterable[Cause]:
    """Yield a cause for every item whose key an earlier item has."""
    return _duplicates(path, keys) if len(set(keys)) < len(keys) else ()


def _duplicates(path: str, keys: Sequence[Any]) -> Causes:
    seen = set()
    for i, key in enumerate(keys):
        if key in seen:
            yield duplicate(f"{path}[{i}]", key)
        seen.add(key)


def immutable(path: str, new: object, old: object) -> Causes:
    """Check that a field did not change. Documents are in the shape that Go writes, so empty fields are absent from
    both and plain equality is enough."""
    if new != old:
        yield invalid(path, new, "field is immutable")


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
