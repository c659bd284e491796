"""Watching objects: the changes in a collection, and the states of one object.

A server ends every watch sooner or later. A new watch continues from the last version seen; if that version has
expired, the objects are listed again.
"""

import time
from collections.abc import Iterator, Sequence

from devlet.cli.resources import VIEWS_GROUP, Resource
from devlet.cli.session import JSON, Document, Query, Session
from devlet.errors import Expired, NotFound
from devlet.objects.subdocuments import mappings, text

PAUSE = 1.0  # seconds, after a watch that ended at once
POLL = 0.2  # seconds between two reads of a view, which cannot be watched


def changes(
    session: Session, path: str, query: Query, version: str, *, accept: str = JSON, deadline: float | None = None
) -> Iterator[tuple[str, Document]]:
    """Yield type and object of each event after `version` until the deadline, in terms of `time.monotonic`.

    Raises Expired if the server no longer has the events since that version."""
    while (left := _left(deadline)) is None or left > 0:
        began = time.monotonic()
        seen = False
        asked = [*query, ("resourceVersion", version)]
        for event in session.watch(path, asked, accept=accept, timeout=left):
            seen = True
            found = event.get("object")
            if not isinstance(found, dict):
                continue
            if event.get("type") == "ERROR":
                raise _error(found)
            version = _version(found) or version
            if event.get("type") != "BOOKMARK":
                yield str(event.get("type")), found
        if not seen and time.monotonic() - began < PAUSE:
            time.sleep(PAUSE if left is None else min(PAUSE, left))


def states(
    session: Session, resource: Resource, namespace: str, name: str, *, deadline: float | None = None
) -> Iterator[Document | None]:
    """Yield the object as it is now and after each change, None while it does not exist, until the deadline."""
    path, query = resource.collection(namespace), [("fieldSelector", f"metadata.name={name}")]
    while True:
        listing = session.get(path, query)
        items: Sequence[Document] = listing.get("items") or ()
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        yield head | items[0] if items else None
        if resource.group == VIEWS_GROUP:  # they have no versions to watch from
            if (left := _left(deadline)) is not None and left <= 0:
                return
            time.sleep(POLL if left is None else min(POLL, left))
            continue
        try:
            for type_, found in changes(session, path, query, _version(listing), deadline=deadline):
                yield None if type_ == "DELETED" else found
        except Expired:
            continue
        return


def gone(session: Session, resource: Resource, namespace: str, name: str, uid: str, deadline: float | None) -> bool:
    """Wait until the object with this UID is gone. Return False if the deadline passes first."""
    try:
        if _uid(session.get(resource.item(namespace, name))) != uid:
            return True
    except NotFound:
        return True
    return any(
        found is None or _uid(found) != uid for found in states(session, resource, namespace, name, deadline=deadline)
    )


def deadline_in(seconds: float) -> float:
    return time.monotonic() + seconds


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()


def _version(found: Document) -> str:
    """Return the version of an object or list, or of the row of a Table, which has no version in a watch."""
    if version := text(found, "metadata", "resourceVersion"):
        return version
    rows = mappings(found, "rows")
    return text(rows[0], "object", "metadata", "resourceVersion") if rows else ""


def _uid(found: Document) -> str:
    return text(found, "metadata", "uid")


def _error(status: Document) -> Exception:
    from devlet.objects.statuses import error_from

    return error_from(status)
