"""Query parameters and DeleteOptions bodies, as options of the port.

Errors have the form of kube-apiserver's: an invalid CreateOptions, ListOptions and so on."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from devlet.cluster.client import (
    DeleteOptions,
    FieldValidation,
    ListOptions,
    Preconditions,
    Propagation,
    VersionMatch,
    WatchOptions,
    WriteOptions,
)
from devlet.errors import BadRequest, Cause, InvalidObject
from devlet.objects.documents import Document

Query = Mapping[str, str]
T = TypeVar("T")
MAX_MANAGER = 128


def is_watch(query: Query) -> bool:
    return _flag(query, "watch")


def list_options(query: Query) -> ListOptions:
    if "sendInitialEvents" in query:
        text = "Forbidden: sendInitialEvents is forbidden for list"
        raise _invalid("ListOptions", "FieldValueForbidden", text, "sendInitialEvents")
    return ListOptions(
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        max(_integer(query, "limit") or 0, 0),
        query.get("continue", ""),
        query.get("resourceVersion", ""),
        _choice("ListOptions", query, "resourceVersionMatch", VersionMatch) or VersionMatch.ANY,
    )


def watch_options(query: Query) -> WatchOptions:
    timeout = _integer(query, "timeoutSeconds")
    return WatchOptions(
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        query.get("resourceVersion", ""),
        _choice("ListOptions", query, "resourceVersionMatch", VersionMatch) or VersionMatch.ANY,
        _flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        _flag(query, "allowWatchBookmarks"),
        float(timeout) if timeout else None,
    )


def write_options(query: Query, kind: str, user_agent: str, warn: Callable[[str], None]) -> WriteOptions:
    """`kind` is CreateOptions, UpdateOptions or PatchOptions."""
    manager = query.get("fieldManager", "")
    if len(manager) > MAX_MANAGER or not manager.isprintable():
        text = f'Invalid value: "{manager[:MAX_MANAGER]}": must be at most {MAX_MANAGER} printable characters'
        raise _invalid(kind, "FieldValueInvalid", text, "fieldManager")
    return WriteOptions(
        _dry_run(query.get("dryRun", ""), kind),
        manager or user_agent.partition("/")[0][:MAX_MANAGER] or "unknown",
        _choice(kind, query, "fieldValidation", FieldValidation) or FieldValidation.WARN,
        warn,
    )


def check_force(query: Query, *, is_apply: bool) -> None:
    if "force" in query and not is_apply:
        text = "Forbidden: may not be specified for non-apply patch"
        raise _invalid("PatchOptions", "FieldValueForbidden", text, "force")


def is_forced(query: Query) -> bool:
    return _flag(query, "force")


def delete_options(query: Query, body: Document | None) -> DeleteOptions:
    """Return the options of a deletion. Fields of the body take precedence over parameters."""
    body = body or {}
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", _integer(query, "gracePeriodSeconds"))
    policy = body.get("propagationPolicy") or query.get("propagationPolicy")
    orphan = body.get("orphanDependents", _flag(query, "orphanDependents") if "orphanDependents" in query else None)
    if policy is not None and orphan is not None:
        text = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        raise _invalid("DeleteOptions", "FieldValueInvalid", text, "propagationPolicy")
    propagation = _choice(
        "DeleteOptions", {"propagationPolicy": policy} if policy else {}, "propagationPolicy", Propagation
    )
    if orphan is not None:
        propagation = Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    dry_run = ",".join(body.get("dryRun") or []) or query.get("dryRun", "")
    return DeleteOptions(
        grace,
        propagation,
        Preconditions(preconditions.get("uid"), preconditions.get("resourceVersion")),
        _dry_run(dry_run, "DeleteOptions"),
    )


def _dry_run(text: str, kind: str) -> bool:
    if text in ("", "All"):
        return text == "All"
    raise _invalid(kind, "FieldValueNotSupported", f'Unsupported value: ["{text}"]: supported values: "All"', "dryRun")


def _flag(query: Query, name: str) -> bool:
    return query.get(name, "").lower() not in ("", "0", "false")


def _integer(query: Query, name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit() or len(text) > 19:
        raise BadRequest(f'{name}: "{text[:40]}" is not a number')
    return int(text)


def _choice(kind: str, query: Query, name: str, choices: Callable[[str], T]) -> T | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        return choices(text)
    except ValueError:
        supported = ", ".join(f'"{c.value}"' for c in choices if c.value)  # type: ignore[attr-defined]
        message = f'Unsupported value: "{text[:40]}": supported values: {supported}'
        raise _invalid(kind, "FieldValueNotSupported", message, name) from None


def _invalid(kind: str, reason: str, text: str, field: str) -> InvalidObject:
    return InvalidObject(f"{kind}.meta.k8s.io", "", [Cause(reason, text, field)])
