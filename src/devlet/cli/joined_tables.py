"""Tables that no server has, because they join what it says of several types: `devlet get claims` and `get slices`.

A claim is joined with what the node has prepared of it and who waits for it, a slice with the claims that hold its
devices. What cannot be had, because the server is no devlet or does not let us, is shown as unknown.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from devlet.cli.output import Found
from devlet.cli.resources import VIEWS, Resource
from devlet.cli.selection import Scope, Wanted
from devlet.cli.session import Document, Session
from devlet.cli.views import claim_row, slice_row
from devlet.cli.views.awaited import driver_states
from devlet.cli.views.slice import holders
from devlet.errors import Forbidden, NotFound
from devlet.objects.subdocuments import mappings, name, text
from devlet.objects.table_cells import Column

ON_NODE, ELSEWHERE = 1.0, 5.0  # seconds between two looks; a cluster has more to do than a devlet beside us
_READY = "Prepared"
_VIEWS = {view.plural: view for view in VIEWS}

# The Table as of a moment.
Look = Callable[[datetime], Document]


def joined(session: Session, scope: Scope, want: Wanted, objects: Sequence[Document], *, wide: bool) -> Document:
    """A Table of these objects, and of claims that only the node knows of if they are wanted too."""
    return _look(session, scope, want, objects, wide=wide)(datetime.now(UTC))


def followed(session: Session, scope: Scope, want: Wanted, *, wide: bool) -> Iterator[Document]:
    """A Table of what is there, and then of the rows that changed, each time we look."""
    query = [*scope.query, *(("fieldSelector", f"metadata.name={wanted}") for wanted in want.names)]
    path = want.resource.collection(scope.namespace)
    began = datetime.now(UTC)
    before: dict[str, object] = {}
    while True:
        objects = [o for page in session.pages(path, query) for o in Found(want.resource, page).objects]
        look = _look(session, scope, want, objects, wide=wide)
        # Compared as of one moment: that it has grown older is no change.
        now = {_place(row): row["cells"] for row in look(began)["rows"]}
        table = look(datetime.now(UTC))
        yield table | {"rows": [r for r in table["rows"] if now[_place(r)] != before.get(_place(r))]}
        before = now
        time.sleep(ON_NODE if session.is_node else ELSEWHERE)


def _look(session: Session, scope: Scope, want: Wanted, objects: Sequence[Document], *, wide: bool) -> Look:
    if want.resource.plural == "resourceslices":
        return _slices(session, want.resource, objects)
    return _claims(session, scope, want, objects, wide=wide)


def _slices(session: Session, resource: Resource, slices: Sequence[Document]) -> Look:
    claims = _all(session, resource._replace(plural="resourceclaims", namespaced=True), "") if slices else []
    held = None if claims is None else holders(claims)

    def look(now: datetime) -> Document:
        return _table(slice_row.COLUMNS, ((slice_, slice_row.cells(slice_, held, now=now)) for slice_ in slices))

    return look


def _claims(session: Session, scope: Scope, want: Wanted, claims: Sequence[Document], *, wide: bool) -> Look:
    known = _all(session, _VIEWS["preparedclaims"], scope.namespace) if session.is_node else None
    prepared = {_key(view): view for view in known or ()}
    drivers = _all(session, _VIEWS["drivers"], "") if any(map(_is_open, prepared.values())) else None
    states = None if drivers is None else driver_states(drivers)
    pairs: list[tuple[Document | None, Document | None]] = []
    for claim in claims:
        found = [view for key in _keys(claim) if (view := prepared.pop(key, None))]
        pairs.append((claim, found[0] if found else None))
    if not scope.query:
        pairs += [(None, view) for view in prepared.values() if not want.names or name(view) in want.names]

    def look(now: datetime) -> Document:
        rows = (
            (claim or view or {}, claim_row.cells(claim, view, states, now=now, on_node=known is not None, wide=wide))
            for claim, view in pairs
        )
        return _table(claim_row.COLUMNS, rows)

    return look


def _keys(claim: Document) -> Iterator[str]:
    """What its view may be found by."""
    yield text(claim, "metadata", "uid")
    yield f"{text(claim, 'metadata', 'namespace')}/{name(claim)}"


def _key(view: Document) -> str:
    """The claim's UID, since another one may have its name by now; the name if the node does not know the UID yet."""
    return text(view, "spec", "uid") or f"{text(view, 'metadata', 'namespace')}/{name(view)}"


def _is_open(view: Document) -> bool:
    """There is something to say of its drivers."""
    return text(view, "status", "state") != _READY or bool(mappings(view, "status", "waiting"))


def _all(session: Session, resource: Resource, namespace: str) -> list[Document] | None:
    """None if the server does not have them, or not for us."""
    try:
        pages = session.pages(resource.collection(namespace))
        return [item for page in pages for item in page.get("items") or () if isinstance(item, dict)]
    except (NotFound, Forbidden):
        return None


def _table(columns: Iterable[Column], rows: Iterable[tuple[Document, list[str]]]) -> Document:
    shown = [{"cells": cells, "object": found} for found, cells in rows]
    return {"kind": "Table", "columnDefinitions": [column.document() for column in columns], "rows": shown}


def _place(row: Document) -> str:
    metadata = row["object"].get("metadata") or {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}/{metadata.get('uid')}"
