"""JSON patch (RFC 6902): a list of operations applied in order to a copy; all of them or none.

There are two kinds of errors: an invalid patch (BadRequest), and an operation that does not fit the document, such as a
missing path or a failed test (PatchFailed). Kubernetes objects have no nulls, so a test for null also succeeds if the
key is absent. Otherwise the RFC applies; negative indexes are errors.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from devlet.errors import BadRequest
from devlet.objects.documents import Document, copy
from devlet.objects.patches.limits import MAX_COPIED_BYTES, MAX_DEPTH, MAX_OPERATIONS, PatchFailed, check_depth, depth

Pointer = tuple[str, ...]

_VALUE = {"add", "replace", "test"}
_FROM = {"move", "copy"}
_NAMES = _VALUE | _FROM | {"remove"}


def apply(document: Document, operations: Any) -> Document:
    """Return the document after all operations."""
    parsed = _parse(operations)
    check_depth(document, "the object")
    run = _Run(copy(document))
    for operation in parsed:
        run.do(operation)
    if not isinstance(run.root, dict):
        raise PatchFailed("the patch leaves something that is not an object")
    return run.root


@dataclass(frozen=True, slots=True)
class _Operation:
    op: str
    path: Pointer
    source: Pointer
    value: Any
    text: str  # the operation in messages: `add "/spec/x"`


def _parse(operations: Any) -> list[_Operation]:
    if not isinstance(operations, list):
        raise BadRequest("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequest(
            f"the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}",
        )
    return [_operation(raw, index) for index, raw in enumerate(operations)]


def _operation(raw: Any, index: int) -> _Operation:
    where = f"JSON patch operation {index}"
    if not isinstance(raw, dict):
        raise BadRequest(f"{where} is not an object")
    op = raw.get("op")
    if not isinstance(op, str) or op not in _NAMES:
        raise BadRequest(f'{where}: "op" must be one of add, remove, replace, move, copy, test; got {op!r}')
    if op in _VALUE and "value" not in raw:
        raise BadRequest(f'{where}: {op} needs a "value"')
    check_depth(raw.get("value"), f'{where}: "value"')
    source = _pointer(raw, "from", where) if op in _FROM else ()
    return _Operation(op, _pointer(raw, "path", where), source, raw.get("value"), f'{op} "{raw["path"]}"')


def _pointer(raw: dict[str, Any], key: str, where: str) -> Pointer:
    text = raw.get(key)
    if not isinstance(text, str):
        raise BadRequest(f'{where}: {raw["op"]} needs "{key}", a JSON pointer')
    if text and not text.startswith("/"):
        raise BadRequest(f'{where}: the JSON pointer {text!r} must be empty or begin with "/"')
    return tuple(_unescape(token, where) for token in text.split("/")[1:])


def _unescape(token: str, where: str) -> str:
    rest = token.replace("~0", "").replace("~1", "")
    if "~" in rest:
        raise BadRequest(f'{where}: "~" in a JSON pointer must be followed by 0 or 1, as in {token!r} it is not')
    return token.replace("~1", "/").replace("~0", "~")


@dataclass(slots=True)
class _Run:
    """The document while operations modify it in place."""

    root: Any
    copied: int = 0

    def do(self, operation: _Operation) -> None:
        match operation.op:
            case "add":
                self._add(operation.path, copy(operation.value), operation)
            case "remove":
                self._remove(operation.path, operation)
            case "replace":
                self._replace(operation)
            case "move":
                self._move(operation)
            case "copy":
                self._copy(operation)
            case _:
                self._test(operation)

    def _add(self, path: Pointer, value: Any, operation: _Operation) -> None:
        _check_depth(path, value, operation)
        if not path:
            self.root = value
            return
        parent = self._find(path[:-1], operation)
        if isinstance(parent, list):
            parent.insert(_index(path[-1], len(parent), operation, end=True), value)
        else:
            _object(parent, path, operation)[path[-1]] = value

    def _remove(self, path: Pointer, operation: _Operation) -> Any:
        if not path:
            raise PatchFailed(f"{operation.text}: the whole object cannot be removed")
        parent = self._find(path[:-1], operation)
        if isinstance(parent, list):
            return parent.pop(_index(path[-1], len(parent) - 1, operation))
        if path[-1] not in _object(parent, path, operation):
            raise _missing(path, operation)
        return parent.pop(path[-1])

    def _replace(self, operation: _Operation) -> None:
        path = operation.path
        self._find(path, operation)
        if not path:
            return self._add(path, copy(operation.value), operation)
        _check_depth(path, operation.value, operation)
        parent = self._find(path[:-1], operation)
        parent[int(path[-1]) if isinstance(parent, list) else path[-1]] = copy(operation.value)

    def _move(self, operation: _Operation) -> None:
        source, path = operation.source, operation.path
        if source == path:
            self._find(source, operation)
            return
        if path[: len(source)] == source:
            raise PatchFailed(f'{operation.text}: "{_text(source)}" cannot be moved into itself')
        self._add(path, self._remove(source, operation), operation)

    def _copy(self, operation: _Operation) -> None:
        value = self._find(operation.source, operation)
        self.copied += len(msgspec.json.encode(value))
        if self.copied > MAX_COPIED_BYTES:
            raise PatchFailed(f"{operation.text}: the patch copies more than {MAX_COPIED_BYTES} bytes in all")
        self._add(operation.path, copy(value), operation)

    def _test(self, operation: _Operation) -> None:
        if operation.value is None and operation.path:
            parent = self._find(operation.path[:-1], operation)
            if isinstance(parent, dict) and operation.path[-1] not in parent:
                return
        if not same(self._find(operation.path, operation), operation.value):
            raise PatchFailed(f"{operation.text}: the value there is another one")

    def _find(self, path: Pointer, operation: _Operation) -> Any:
        found = self.root
        for level, token in enumerate(path):
            if isinstance(found, list):
                found = found[_index(token, len(found) - 1, operation)]
            elif isinstance(found, dict) and token in found:
                found = found[token]
            else:
                raise _missing(path[: level + 1], operation)
        return found


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: unlike in Python, true is not 1. Values are at most `MAX_DEPTH`
    deep."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _index(token: str, last: int, operation: _Operation, *, end: bool = False) -> int:
    if token == "-" and end:
        return last
    if not (token.isascii() and token.isdigit()) or (token.startswith("0") and token != "0"):
        raise PatchFailed(f'{operation.text}: "{token}" is not an index of a list')
    # A token of thousands of digits must not be converted to a number.
    if len(token) > 9 or int(token) > last:
        raise PatchFailed(f"{operation.text}: index {token[:20]} is beyond the end of the list")
    return int(token)


def _check_depth(path: Pointer, value: Any, operation: _Operation) -> None:
    if len(path) + depth(value) > MAX_DEPTH:
        raise PatchFailed(f"{operation.text}: the result would be nested more than {MAX_DEPTH} levels deep")


def _object(parent: Any, path: Pointer, operation: _Operation) -> dict[str, Any]:
    if not isinstance(parent, dict):
        raise PatchFailed(f'{operation.text}: "{_text(path[:-1])}" is neither an object nor a list')
    return parent


def _missing(path: Pointer, operation: _Operation) -> PatchFailed:
    return PatchFailed(f'{operation.text}: "{_text(path)}" does not exist')


def _text(path: Pointer) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in path)
