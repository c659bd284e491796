"""The work of `devlet get`: read, print and watch objects.

Separate from the command because `quick` runs it without click.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from devlet.cli import node_views, selection
from devlet.cli.output import Found, Printer, Shown, emit, printer
from devlet.cli.resources import VIEWS_GROUP, Resources
from devlet.cli.selection import Scope, Wanted
from devlet.cli.session import JSON, TABLE, Document, Query, Session
from devlet.errors import DevletError, InvalidInput, NotFound


class Request(NamedTuple):
    """The arguments and flags of the command."""

    arguments: tuple[str, ...] = ()
    output: str = ""
    selector: str = ""
    field_selector: str = ""
    all_namespaces: bool = False
    files: tuple[str, ...] = ()
    recursive: bool = False
    watch: bool = False
    watch_only: bool = False
    no_headers: bool = False
    show_labels: bool = False
    show_kind: bool = False
    show_managed_fields: bool = False
    sort_by: str = ""
    ignore_not_found: bool = False


def get(session: Session, namespace: str, request: Request) -> None:
    """Run `devlet get`. `namespace` is that of the command line, empty if none was given."""
    shown = Shown(not request.no_headers, request.all_namespaces, request.show_labels, request.show_kind)
    printing = printer(request.output, shown, managed_fields=request.show_managed_fields)
    order = _order(request.sort_by) if request.sort_by else None
    scope = Scope(
        selection.place(session, namespace, everywhere=request.all_namespaces),
        request.selector,
        request.field_selector,
    )
    wanted = _wanted(session, namespace, scope, request)
    wide = request.output == "wide"
    reader = _Reader(session, printing, order, wide=wide, ignore_not_found=request.ignore_not_found)
    if request.watch or request.watch_only:
        _follow(reader, wanted, existing=not request.watch_only)
        return
    found = list(reader.read(wanted))
    single = len(wanted) == 1 and len(wanted[0][1].names) == 1
    if found or not reader.errors:
        emit(printing, printing.all(found, single=single))
    if not _any(found) and not reader.errors and printing.accept == TABLE and not request.ignore_not_found:
        sys.stderr.write(f"{_nothing(scope, [w for _, w in wanted])}\n")
    if reader.errors:
        raise ExceptionGroup("get", reader.errors)


Place = tuple[Scope, Wanted]
Order = Callable[[list[Found]], list[Found]]


def _wanted(session: Session, namespace: str, scope: Scope, request: Request) -> list[Place]:
    selection.one_source(request.arguments, request.files)
    resources = Resources(session)
    if request.files:
        named = selection.of_files(resources, session, request.files, recursive=request.recursive, namespace=namespace)
        return [(Scope(n.namespace), Wanted(n.resource, (n.name,))) for n in named]
    wanted = selection.parse(resources, request.arguments)
    scope.check(wanted)
    return [(scope, want) for want in node_views.resolved(session, wanted)]


def _order(path: str) -> Order:
    from devlet.cli.path_output import order_by

    return order_by(path)


class _Reader:
    """Reads objects, and collects errors about those that cannot be read."""

    def __init__(
        self, session: Session, printing: Printer, order: Order | None, *, wide: bool, ignore_not_found: bool
    ) -> None:
        self.session = session
        self.printing = printing
        self.errors: list[DevletError] = []
        self.wide = wide
        self._order = order
        self._ignore_not_found = ignore_not_found

    def read(self, wanted: Sequence[Place]) -> Iterator[Found]:
        for scope, want in wanted:
            found = []
            try:
                found += [Found(want.resource, d) for d in self._documents(scope, want)]
            except DevletError as e:
                self.errors.append(e)
            yield from self._order(found) if self._order else node_views.ordered(found)

    def joins(self, want: Wanted) -> bool:
        """Return whether the table is made by `joined_tables`, not by the server."""
        return want.resource.joined and self.printing.accept == TABLE

    def _documents(self, scope: Scope, want: Wanted) -> Iterator[Document]:
        if not self.joins(want):
            yield from self._answers(scope, want, self.printing.accept)
            return
        from devlet.cli.joined_tables import joined

        answers = list(self._answers(scope, want, JSON))
        objects = [o for answer in answers for o in Found(want.resource, answer).objects]
        yield joined(self.session, scope, want, objects, wide=self.wide)

    def _answers(self, scope: Scope, want: Wanted, accept: str) -> Iterator[Document]:
        if not want.names:
            query = [*scope.query, *self._whole_objects()]
            path = want.resource.collection(scope.namespace)
            with node_views.served(want.resource):
                yield from self.session.pages(path, query, accept=accept)
        for name in want.names:
            try:
                path = want.resource.item(scope.namespace, name)
                yield self.session.get(path, self._whole_objects(), accept=accept)
            except NotFound as e:
                if not self._ignore_not_found:
                    self.errors.append(e)

    def _whole_objects(self) -> Query:
        return [("includeObject", "Object")] if self._order and self.printing.accept == TABLE else []


def _follow(reader: _Reader, wanted: Sequence[Place], *, existing: bool) -> None:
    if len(wanted) != 1 or len(wanted[0][1].names) > 1:
        raise InvalidInput("only one type or one object can be watched at a time")
    from devlet.cli.watching import changes

    scope, want = wanted[0]
    session, printing = reader.session, reader.printing
    if reader.joins(want):
        from devlet.cli.joined_tables import followed

        tables = followed(session, scope, want, wide=reader.wide)
        for table in tables if existing else islice(tables, 1, None):
            emit(printing, printing.one(Found(want.resource, table)))
        return
    query = list(scope.query)
    if want.names:
        session.get(want.resource.item(scope.namespace, want.names[0]))  # raises NotFound if it does not exist
        query.append(("fieldSelector", f"metadata.name={want.names[0]}"))
    path = want.resource.collection(scope.namespace)
    if want.resource.group == VIEWS_GROUP:
        listings = node_views.followed(session, path, query, accept=printing.accept)
        for page in listings if existing else islice(listings, 1, None):
            for found in node_views.ordered([Found(want.resource, page)]):
                emit(printing, printing.one(found))
        return
    listing: Document = {}
    for listing in session.pages(path, query, accept=printing.accept):
        if existing:
            emit(printing, printing.one(Found(want.resource, listing)))
    version = str((listing.get("metadata") or {}).get("resourceVersion") or "")
    columns = listing.get("columnDefinitions")
    for _, changed in changes(session, path, query, version, accept=printing.accept):
        if changed.get("kind") == "Table":
            changed["columnDefinitions"] = columns
        emit(printing, printing.one(Found(want.resource, changed)))


def _any(found: Sequence[Found]) -> bool:
    return any(
        f.document.get("rows") or f.document.get("items") or f.document.get("metadata", {}).get("name") for f in found
    )


def _nothing(scope: Scope, wanted: Sequence[Wanted]) -> str:
    if scope.namespace and any(w.resource.namespaced for w in wanted):
        return f"No resources found in {scope.namespace} namespace."
    return "No resources found"
