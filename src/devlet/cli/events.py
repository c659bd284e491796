"""`devlet events`, and how events are shown.

Events have two shapes: older ones count in `count` and `lastTimestamp`, newer ones have a `series`. Both are read.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from devlet.cli import selection
from devlet.cli.options import (
    KubectlCommand,
    all_namespaces_option,
    no_headers_option,
    output_option,
    target_options,
)
from devlet.cli.output import FORMATS, Found, emit, printer
from devlet.cli.resources import Resource, Resources
from devlet.cli.session import Document, Session
from devlet.cli.tables import Layout, cell_text
from devlet.cli.watching import changes
from devlet.errors import InvalidInput
from devlet.objects.subdocuments import number, text
from devlet.objects.table_cells import duration, instant

EVENTS = Resource("", "v1", "events", "event", "Event", namespaced=True)
HEADER = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
_NEVER = datetime.min.replace(tzinfo=UTC)

_EXAMPLES = """\b
Examples:
  devlet events
  devlet events --for pod/train -w
  devlet events -A --types=Warning
"""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@click.option("--for", "about", metavar="TYPE/NAME", default="", help="Show only events about this object.")
@click.option("--types", metavar="TYPE,…", default="", help="Show only events of these types: Normal, Warning.")
@all_namespaces_option
@click.option("-w", "--watch", is_flag=True, help="Watch for new events after listing the existing ones.")
@no_headers_option
@output_option(FORMATS)
@target_options
def command(
    session: Session,
    namespace: str,
    about: str,
    types: str,
    all_namespaces: bool,
    watch: bool,
    no_headers: bool,
    output: str,
) -> None:
    """List events, oldest first."""
    where = selection.place(session, namespace, everywhere=all_namespaces)
    wanted = {t.lower() for t in types.split(",") if t}
    if not wanted <= {"normal", "warning"}:
        raise InvalidInput(f"--types={types}: expected Normal, Warning or both")
    query = _about(session, about) if about else []
    listed: list[Document] = []
    version = ""
    for page in session.pages(EVENTS.collection(where), query):
        listed += page.get("items") or ()
        version = str((page.get("metadata") or {}).get("resourceVersion") or "")
    table = _Events(output, all_namespaces, headers=not no_headers)
    found = sorted((e for e in listed if _of_type(e, wanted)), key=last_seen)
    if found or output:
        table.show(found)
    elif not watch:
        place_text = f" in {where} namespace." if where else "."
        click.echo(f"No events found{place_text}", err=True)
    if watch:
        for type_, event in changes(session, EVENTS.collection(where), query, version):
            if type_ != "DELETED" and _of_type(event, wanted):
                table.show([event], follow=True)


class _Events:
    def __init__(self, output: str, namespaces: bool, *, headers: bool) -> None:
        self._printer = printer(output) if output not in ("", "wide") else None
        self._namespaces = namespaces
        self._headers = headers
        self._layout = Layout()

    def show(self, events: Sequence[Document], *, follow: bool = False) -> None:
        if self._printer is None:
            click.echo("".join(f"{line}\n" for line in self._layout.lines(self._rows(events))), nl=False)
            return
        found = [Found(EVENTS, {"apiVersion": "v1", "kind": "Event"} | event) for event in events]
        lines = self._printer.one(found[0]) if follow else self._printer.all(found, single=False)
        emit(self._printer, lines)

    def _rows(self, events: Sequence[Document]) -> list[list[str]]:
        now = datetime.now(UTC)
        rows = [["NAMESPACE"] * self._namespaces + HEADER] if self._headers else []
        self._headers = False
        for event in events:
            namespace = [str(event["metadata"].get("namespace", ""))] * self._namespaces
            rows.append(namespace + row(event, now))
        return rows


def _about(session: Session, about: str) -> list[tuple[str, str]]:
    wanted = selection.parse(Resources(session), [about]) if "/" in about else []
    if len(wanted) != 1 or len(wanted[0].names) != 1:
        raise InvalidInput(f"--for={about}: expected TYPE/NAME, as in pod/train")
    resource, name = wanted[0].resource, wanted[0].names[0]
    return [("fieldSelector", f"involvedObject.kind={resource.kind},involvedObject.name={name}")]


def _of_type(event: Document, wanted: set[str]) -> bool:
    return not wanted or str(event.get("type", "")).lower() in wanted


def last_seen(event: Document) -> datetime:
    """For sorting: an event without any time was before all others."""
    return (
        _first(event, ("series", "lastObservedTime"), ("lastTimestamp",), ("firstTimestamp",), ("eventTime",)) or _NEVER
    )


def row(event: Document, now: datetime) -> list[str]:
    about = f"{text(event, 'involvedObject', 'kind')}/{text(event, 'involvedObject', 'name')}"
    return [
        seen(event, now),
        cell_text(text(event, "type")),
        cell_text(text(event, "reason")),
        cell_text(about),
        cell_text(text(event, "message").strip()),
    ]


def seen(event: Document, now: datetime) -> str:
    """`5m`, or `5m (x3 over 20m)` for one that happened more than once."""
    last = last_seen(event)
    if last == _NEVER:
        return "<unknown>"
    ago = duration((now - last).total_seconds())
    count = number(event, "series", "count") or number(event, "count")
    first = _first(event, ("firstTimestamp",), ("eventTime",))
    if count < 2 or first is None:
        return ago
    return f"{ago} (x{count} over {duration((now - first).total_seconds())})"


def source(event: Document) -> str:
    component = text(event, "source", "component") or text(event, "reportingComponent")
    host = text(event, "source", "host")
    return f"{component}, {host}" if host else component


def _first(event: Document, *paths: tuple[str, ...]) -> datetime | None:
    for path in paths:
        if moment := instant(text(event, *path)):
            return moment
    return None
