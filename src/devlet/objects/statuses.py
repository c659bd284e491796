"""Convert between errors and the `Status` documents of a Kubernetes API.

The server calls `status_of(error)`, the client `error_from(status)`. Clients look at `reason` first, and at `code` only
if they do not know the reason; the message is for people. `InUse` and `StateCorrupt` are internal errors that no client
can act on: they are sent as InternalError and received as a plain `DevletError`.
"""

import math
from collections.abc import Sequence
from typing import Annotated

import msgspec

from devlet.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    DevletError,
    Expired,
    Forbidden,
    InvalidInput,
    InvalidObject,
    NotFound,
    ResourceError,
    TooLarge,
    TooManyRequests,
    Unavailable,
    UnsupportedPatch,
)
from devlet.objects.documents import Document

MAX_TEXT = 2048  # characters of a response that is not a Status

_VERSION_TOO_LARGE = "Too large resource version"
_TIMEOUT = "Timeout: "

# The first row whose class matches is used, so subclasses come first.
_CODES: tuple[tuple[type[DevletError], int, str], ...] = (
    (InvalidObject, 422, "Invalid"),
    (UnsupportedPatch, 415, "UnsupportedMediaType"),
    (TooLarge, 413, "RequestEntityTooLarge"),
    (InvalidInput, 400, "BadRequest"),
    (Forbidden, 403, "Forbidden"),
    (NotFound, 404, "NotFound"),
    (AlreadyExists, 409, "AlreadyExists"),
    (Conflict, 409, "Conflict"),
    (Expired, 410, "Expired"),
    (TooManyRequests, 429, "TooManyRequests"),
    (Unavailable, 503, "ServiceUnavailable"),
    (DevletError, 500, "InternalError"),
)

_BY_REASON: dict[str, type[DevletError]] = {
    **{reason: type_ for type_, _, reason in _CODES},
    "BadRequest": BadRequest,
    "Unauthorized": Forbidden,
    "MethodNotAllowed": BadRequest,
    "NotAcceptable": BadRequest,
    "Gone": Expired,
    "ServerTimeout": Unavailable,
    "Timeout": Unavailable,
}
_BY_CODE: dict[int, type[DevletError]] = {
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    415: UnsupportedPatch,
    422: InvalidObject,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def failure(code: int, reason: str, message: str, details: Document | None = None) -> Document:
    """Return a Status for responses that have no error class (401, 405, 406)."""
    status: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    return status | ({} if details is None else {"details": details}) | {"code": code}


def status_of(error: DevletError) -> Document:
    code, reason = next((code, reason) for type_, code, reason in _CODES if isinstance(error, type_))
    match error:
        case InvalidObject():
            return failure(code, reason, str(error), _details(error.name, error.kind, error.causes))
        case Expired():
            status = failure(code, reason, str(error))
            return status | {"metadata": {"continue": error.fresh_continue}} if error.fresh_continue else status
        case ResourceError():
            return failure(code, reason, str(error), _details(error.name, error.resource, error.causes))
        case Unavailable():
            return _unavailable(error)
        case _:
            return failure(code, reason, str(error))


def _details(name: str, qualified: str, causes: Sequence[Cause]) -> Document:
    kind, _, group = qualified.partition(".")
    described = {"name": name, "group": group, "kind": kind, "causes": [_cause(c) for c in causes]}
    return {key: value for key, value in described.items() if value}


def _cause(cause: Cause) -> Document:
    members = {"reason": cause.reason, "message": cause.message, "field": cause.field}
    return {key: value for key, value in members.items() if value}


def _unavailable(error: Unavailable) -> Document:
    details: Document = {"retryAfterSeconds": math.ceil(error.retry_after)}
    if not str(error).startswith(_VERSION_TOO_LARGE):
        if isinstance(error, TooManyRequests):
            return failure(429, "TooManyRequests", str(error), details)
        return failure(503, "ServiceUnavailable", str(error), details)
    details["causes"] = [{"reason": "ResourceVersionTooLarge", "message": _VERSION_TOO_LARGE}]
    return failure(504, "Timeout", _TIMEOUT + str(error), details)


class _Cause(msgspec.Struct):
    reason: str | None = None
    message: str | None = None
    field: str | None = None


class _Details(msgspec.Struct, rename="camel"):
    name: str | None = None
    group: str | None = None
    kind: str | None = None
    causes: list[_Cause] | None = None
    retry_after_seconds: Annotated[float, msgspec.Meta(ge=0, le=86400)] | None = None


class _ListMeta(msgspec.Struct, rename={"continue_": "continue"}):
    continue_: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    kind: str | None = None
    message: str | None = None
    reason: str | None = None
    details: _Details | None = None
    code: int | None = None
    metadata: _ListMeta | None = None


def error_from(status: Document, *, retry_after: float | None = None) -> DevletError:
    """Return the error for a failure Status. `retry_after` is the value from the headers."""
    try:
        read = msgspec.convert(status, _Status)
    except msgspec.ValidationError as e:
        return DevletError(f"the server answered with a malformed Status: {e}")
    return _error(read, 1.0 if retry_after is None else retry_after)


def error_from_answer(code: int, body: bytes, *, retry_after: float | None = None) -> DevletError:
    """Return the error for an HTTP response: that of its Status, or else one made from its code and text."""
    try:
        status: _Status | None = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = None
    if status is None or status.kind != "Status":
        text = body[: 4 * MAX_TEXT].decode(errors="replace").strip()[:MAX_TEXT]
        status = _Status(message=text or f"the server answered with the code {code} and nothing else")
    status.code = status.code or code
    return _error(status, 1.0 if retry_after is None else retry_after)


def _error(status: _Status, retry_after: float) -> DevletError:
    code, details = status.code or 0, status.details or _Details()
    type_ = _BY_REASON.get(status.reason or "") or _BY_CODE.get(code) or _by_range(code)
    message = status.message or status.reason or f"the server reported the code {code}"
    causes = [Cause(c.reason or "", c.message or "", c.field or "") for c in details.causes or ()]
    qualified = ".".join(part for part in (details.kind, details.group) if part)
    if type_ is InvalidObject:
        return _invalid(qualified, details.name or "", causes, message)
    if type_ is Expired:
        return Expired(message, fresh_continue=(status.metadata and status.metadata.continue_) or "")
    if issubclass(type_, Unavailable):
        if message.startswith(_TIMEOUT + _VERSION_TOO_LARGE):
            message = message.removeprefix(_TIMEOUT)
        seconds = details.retry_after_seconds
        return type_(message, retry_after=retry_after if seconds is None else seconds)
    if issubclass(type_, ResourceError):
        return type_(message, resource=qualified, name=details.name or "", causes=causes)
    return type_(message)


def _by_range(code: int) -> type[DevletError]:
    """Return the class for an unknown code. After a server error the outcome of the request is unknown and has to be
    checked."""
    if 400 <= code < 500:
        return BadRequest
    return Unavailable if code >= 500 else DevletError


def _invalid(kind: str, name: str, causes: list[Cause], message: str) -> InvalidObject:
    error = InvalidObject(kind, name, causes)
    error.args = (message,)  # the server's message, which may differ from the one derived from the causes
    return error
