"""The paths of resources on an API server, and the names of options in a URL."""

import math
from urllib.parse import quote

from devlet.cluster.client import ListOptions, WatchOptions, WriteOptions
from devlet.errors import BadRequest
from devlet.objects.kinds import Resource

Query = list[tuple[str, str]]


def collection(resource: Resource, namespace: str) -> str:
    if not resource.namespaced or not namespace:
        return f"{resource.path}/{resource.plural}"
    return f"{resource.path}/namespaces/{_segment(namespace, 'namespace')}/{resource.plural}"


def item(resource: Resource, name: str, namespace: str, subresource: str = "") -> str:
    path = f"{collection(resource, namespace)}/{_segment(name, 'name')}"
    return f"{path}/{_segment(subresource, 'subresource')}" if subresource else path


def _segment(text: str, what: str) -> str:
    """Return a segment of a path. Refuse names that would lead elsewhere, such as `..`."""
    if not text:
        raise BadRequest(f"{what} must be provided")
    if text in (".", "..") or "/" in text or "%" in text or not text.isprintable():
        raise BadRequest(f'{what} {text!r} may not be "." or "..", and may not contain "/", "%" or control characters')
    return quote(text, safe="")


def list_query(options: ListOptions) -> Query:
    return _given(
        ("labelSelector", options.label_selector),
        ("fieldSelector", options.field_selector),
        ("limit", str(options.limit) if options.limit else ""),
        ("continue", options.continue_),
        ("resourceVersion", options.resource_version),
        ("resourceVersionMatch", options.version_match.value),
    )


def watch_query(options: WatchOptions) -> Query:
    """Return the query of a watch. It always asks for bookmarks: they show that a quiet server still runs."""
    initial = "" if options.send_initial_events is None else str(options.send_initial_events).lower()
    return _given(
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("labelSelector", options.label_selector),
        ("fieldSelector", options.field_selector),
        ("resourceVersion", options.resource_version),
        ("resourceVersionMatch", options.version_match.value),
        ("sendInitialEvents", initial),
        ("timeoutSeconds", "" if options.timeout is None else str(max(1, math.ceil(options.timeout)))),
    )


def write_query(options: WriteOptions) -> Query:
    return _given(
        ("dryRun", "All" if options.dry_run else ""),
        ("fieldManager", options.field_manager),
        ("fieldValidation", options.field_validation.value),
    )


def _given(*pairs: tuple[str, str]) -> Query:
    return [pair for pair in pairs if pair[1]]
