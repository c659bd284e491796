"""Short names for devices, plugins and drivers on the command line, and the order of their lists.

In the API, the name of a device consists of its resource and its id, `gpu.example.com:gpu:gpu-0`. On the command line
the id alone names the device, and the resource names all its devices.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from devlet.cli.output import Found
from devlet.cli.resources import VIEWS_GROUP, Resource
from devlet.cli.selection import Wanted
from devlet.cli.session import METADATA, Document, Query, Session
from devlet.cli.tables import rows_of
from devlet.errors import BadRequest, NotFound
from devlet.node.devices.order import natural
from devlet.objects import subdocuments

_INTERVAL = 1.0  # seconds between two polls

Key = tuple[str, list[tuple[str, str]]]


def resolved(session: Session, wanted: Sequence[Wanted]) -> list[Wanted]:
    """Replace ids, resources and sockets by names in the API. A name that matches nothing is left as it is."""
    return [want._replace(names=tuple(dict.fromkeys(_names(session, want)))) for want in wanted]


def ordered(found: list[Found]) -> list[Found]:
    """Sort views by resource and then naturally by id, gpu-2 before gpu-10. Other kinds keep the server's order."""
    if not found or found[0].resource.group != VIEWS_GROUP:
        return found
    resource, first = found[0]
    if first.get("kind") == "Table":
        rows = [row for f in found for row in rows_of(f.document)]
        return [Found(resource, first | {"rows": sorted(rows, key=lambda row: _key(row.get("object")))})]
    objects = sorted((o for f in found for o in f.objects), key=_key)
    return [Found(resource, o) for o in objects]


def followed(session: Session, path: str, query: Query, *, accept: str) -> Iterator[Document]:
    """Yield a list of all views, then polled lists of changes, because views have no versions to watch from."""
    before: dict[str, Any] = {}
    while True:
        now: dict[str, Any] = {}
        for page in session.pages(path, [*query, ("includeObject", "Object")], accept=accept):
            key = "rows" if page.get("kind") == "Table" else "items"
            found = {_place(each): each for each in page.get(key) or () if isinstance(each, dict)}
            now |= {place: each.get("object", each) for place, each in found.items()}
            yield page | {key: [each for place, each in found.items() if now[place] != before.get(place)]}
        before = now
        time.sleep(_INTERVAL)


@contextmanager
def served(resource: Resource) -> Iterator[None]:
    """Explain a NotFound while listing a view: the devlet is older than this command."""
    try:
        yield
    except NotFound as e:
        if resource.group != VIEWS_GROUP:
            raise
        raise NotFound(
            f"the running devlet does not serve {resource.plural}, because it is older than this command:"
            " stop it and start it again with `devlet up`; it keeps its state"
        ) from e


def _names(session: Session, want: Wanted) -> Iterator[str]:
    if want.resource.group != VIEWS_GROUP or want.resource.namespaced:
        yield from want.names
        return
    for text in want.names:
        if name := _named(session, want.resource, text):
            yield name
        elif matches := [subdocuments.name(o) for o in _all(session, want.resource) if text in _called(o)]:
            yield from sorted(matches, key=natural)
        elif "/" in text:
            raise NotFound(f'{want.resource.name} "{text}" not found')
        else:
            yield text


def _named(session: Session, resource: Resource, name: str) -> str:
    """Return the name of the view that the server finds by name or id; empty if it finds none, or several."""
    if "/" in name or "%" in name:
        return ""
    try:
        return subdocuments.name(session.get(resource.item("", name), accept=METADATA))
    except (NotFound, BadRequest):
        return ""


def _all(session: Session, resource: Resource) -> Iterator[Document]:
    with served(resource):
        for page in session.pages(resource.collection("")):
            yield from (item for item in page.get("items") or () if isinstance(item, dict))


def _called(view: Document) -> list[str]:
    """Return what a device, plugin or driver may be called besides its name."""
    spec = view.get("spec") or {}
    resource, id_, socket = (str(spec.get(key) or "") for key in ("resource", "id", "socket"))
    socket = socket or str(spec.get("endpoint") or "")
    return [text for text in (resource, id_, f"{resource}/{id_}", socket, socket.rpartition("/")[2]) if text]


def _key(view: Any) -> Key:
    metadata = (view or {}).get("metadata") or {}
    parts = str(metadata.get("name") or "").split(":")
    return str(metadata.get("namespace") or ""), [natural(part) for part in parts]


def _place(each: Document) -> str:
    """Return the key of a row or an object: its namespace and name."""
    metadata = each.get("object", each).get("metadata") or {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}"
