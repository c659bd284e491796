"""`devlet get`."""

from collections.abc import Iterator, Sequence

import click

from devlet.cli import jsonpath, selection
from devlet.cli.options import (
    KubectlCommand,
    all_namespaces_option,
    arguments,
    file_options,
    one_source,
    output_option,
    place,
    selector_options,
    target_options,
)
from devlet.cli.output import FORMATS, Found, Printer, Shown, printer
from devlet.cli.resources import Resources
from devlet.cli.selection import Scope, Wanted
from devlet.cli.session import TABLE, Document, Query, Session
from devlet.cli.watching import changes
from devlet.errors import DevletError, InvalidInput, NotFound

_EXAMPLES = """\b
Examples:
  devlet get pods
  devlet get resourceclaims -A -o wide
  devlet get pod/train -o jsonpath='{.spec.nodeName}'
  devlet get pods -w
"""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@arguments
@output_option(FORMATS)
@selector_options
@all_namespaces_option
@file_options
@click.option("-w", "--watch", is_flag=True, help="Then follow what changes.")
@click.option("--watch-only", is_flag=True, help="Follow what changes, without what is there now.")
@click.option("--no-headers", is_flag=True, help="Tables without titles.")
@click.option("--show-labels", is_flag=True, help="Tables with labels.")
@click.option("--show-kind", is_flag=True, help="Names with their kind.")
@click.option("--show-managed-fields", is_flag=True, help="JSON and YAML with managedFields.")
@click.option("--sort-by", metavar="PATH", default="", help="Sorted by this JSONPath of each object.")
@click.option("--ignore-not-found", is_flag=True, help="Objects that do not exist are no error.")
@target_options
def command(
    arguments: tuple[str, ...],
    session: Session,
    namespace: str,
    output: str,
    selector: str,
    field_selector: str,
    all_namespaces: bool,
    files: tuple[str, ...],
    recursive: bool,
    watch: bool,
    watch_only: bool,
    no_headers: bool,
    show_labels: bool,
    show_kind: bool,
    show_managed_fields: bool,
    sort_by: str,
    ignore_not_found: bool,
) -> None:
    """Print objects.

    TYPE is a plural, singular or short name, several with commas, or "all"; with its group where it is ambiguous, as in
    resourceclaims.v1beta1.resource.k8s.io."""
    shown = Shown(not no_headers, all_namespaces, show_labels, show_kind)
    printing = printer(output, shown, managed_fields=show_managed_fields)
    order = jsonpath.path(sort_by) if sort_by else None
    one_source(arguments, files)
    scope = Scope(place(session, namespace, all_namespaces), selector, field_selector)
    resources = Resources(session)
    if files:
        wanted = _of_files(resources, files, recursive, session, namespace)
    else:
        wanted = [(scope, w) for w in selection.parse(resources, arguments)]
        scope.check([w for _, w in wanted])
    reader = _Reader(session, printing, order)
    if watch or watch_only:
        _follow(reader, wanted, existing=not watch_only)
        return
    errors: list[DevletError] = []
    found = list(reader.read(wanted, errors, ignore_not_found))
    single = len(wanted) == 1 and len(wanted[0][1].names) == 1
    _print(printing, printing.all(found, single=single) if found or not errors else ())
    if not errors and not _any(found) and printing.accept == TABLE and not ignore_not_found:
        click.echo(_nothing(scope, [w for _, w in wanted]), err=True)
    _fail(errors)


Place = tuple[Scope, Wanted]


class _Reader:
    def __init__(self, session: Session, printing: Printer, order: jsonpath.Path | None) -> None:
        self.session = session
        self.printing = printing
        self._order = order

    def read(self, wanted: Sequence[Place], errors: list[DevletError], ignore_not_found: bool) -> Iterator[Found]:
        """What is there; what is not becomes an error, and the rest is read all the same."""
        for scope, want in wanted:
            found = []
            try:
                for document in self._documents(scope, want, errors, ignore_not_found):
                    found.append(Found(want.resource, document))
            except DevletError as e:
                errors.append(e)
            yield from self._sorted(found)

    def _documents(
        self, scope: Scope, want: Wanted, errors: list[DevletError], ignore_not_found: bool
    ) -> Iterator[Document]:
        if not want.names:
            query = [*scope.query, *self._whole_objects()]
            yield from self.session.pages(want.resource.collection(scope.namespace), query, accept=self.printing.accept)
        for name in want.names:
            try:
                path = want.resource.item(scope.namespace, name)
                yield self.session.get(path, self._whole_objects(), accept=self.printing.accept)
            except NotFound as e:
                if not ignore_not_found:
                    errors.append(e)

    def _whole_objects(self) -> Query:
        return [("includeObject", "Object")] if self._order and self.printing.accept == TABLE else []

    def _sorted(self, found: list[Found]) -> list[Found]:
        order = self._order
        if order is None or not found:
            return found
        if found[0].document.get("kind") == "Table":
            rows = [row for f in found for row in f.document.get("rows") or ()]
            rows.sort(key=lambda row: _sort_key(order, row.get("object")))
            return [Found(found[0].resource, found[0].document | {"rows": rows})]
        objects = sorted((o for f in found for o in f.objects), key=lambda o: _sort_key(order, o))
        return [Found(found[0].resource, o) for o in objects]


def _sort_key(order: jsonpath.Path, found: object) -> tuple[int, float, str]:
    """Numbers before texts, what has neither at the end."""
    match order.find(found):
        case [int() | float() as number, *_]:
            return 0, number, ""
        case [value, *_]:
            return 1, 0, jsonpath.text_of(value)
    return 2, 0, ""


def _follow(reader: _Reader, wanted: Sequence[Place], *, existing: bool) -> None:
    if len(wanted) != 1 or len(wanted[0][1].names) > 1:
        raise InvalidInput("one type, or one object, can be watched at a time")
    scope, want = wanted[0]
    session, printing = reader.session, reader.printing
    query = list(scope.query)
    if want.names:
        session.get(want.resource.item(scope.namespace, want.names[0]))  # to say so if it does not exist
        query.append(("fieldSelector", f"metadata.name={want.names[0]}"))
    path = want.resource.collection(scope.namespace)
    listing: Document = {}
    for listing in session.pages(path, query, accept=printing.accept):
        if existing:
            _print(printing, printing.one(Found(want.resource, listing)))
    version = str((listing.get("metadata") or {}).get("resourceVersion") or "")
    columns = listing.get("columnDefinitions")
    for _, changed in changes(session, path, query, version, accept=printing.accept):
        if changed.get("kind") == "Table":
            changed["columnDefinitions"] = columns
        _print(printing, printing.one(Found(want.resource, changed)))


def _of_files(
    resources: Resources, files: Sequence[str], recursive: bool, session: Session, namespace: str
) -> list[Place]:
    from devlet.cli import manifests

    places = []
    for manifest in manifests.read(files, recursive=recursive):
        resource, where = manifest.place(resources, namespace, session.namespace)
        places.append((Scope(where), Wanted(resource, (manifest.name,))))
    return places


def _print(printing: Printer, lines: Iterator[str] | tuple[()]) -> None:
    click.echo("".join(line + printing.end for line in lines), nl=False)


def _any(found: Sequence[Found]) -> bool:
    return any(f.document.get("rows") or f.document.get("items") or f.document.get("metadata", {}).get("name") for f in found)


def _nothing(scope: Scope, wanted: Sequence[Wanted]) -> str:
    if scope.namespace and any(w.resource.namespaced for w in wanted):
        return f"No resources found in {scope.namespace} namespace."
    return "No resources found"


def _fail(errors: list[DevletError]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("get", errors)
