"""`devlet describe`."""

from collections.abc import Callable, Iterator
from datetime import datetime
from importlib import import_module

import click

from devlet.cli import node_views, selection
from devlet.cli.events import EVENTS, last_seen, seen, source
from devlet.cli.options import (
    KubectlCommand,
    all_namespaces_option,
    arguments,
    file_options,
    selector_options,
    target_options,
)
from devlet.cli.resources import Resources
from devlet.cli.selection import Named, Scope, Wanted
from devlet.cli.session import Document, Session
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, heading, section, table, tree
from devlet.errors import DevletError, Forbidden, NotFound

View = Callable[[Document, Reader], Iterator[str]]

# The plural with its group → the module in `devlet.cli.views` that knows what matters.
VIEWS = {
    "pods": "pod",
    "nodes": "node",
    "secrets": "secret",
    "resourceclaims.resource.k8s.io": "claim",
    "resourceslices.resource.k8s.io": "slice",
    "devices.devlet.dev": "device",
    "plugins.devlet.dev": "plugin",
    "holders.devlet.dev": "holder",
    "drivers.devlet.dev": "driver",
    "preparedclaims.devlet.dev": "prepared_claim",
}

_EXAMPLES = """\b
Examples:
  devlet describe pod train
  devlet describe resourceslices
  devlet describe node/n1
  devlet describe device gpu-0
  devlet describe claim train-gpu
  devlet describe driver gpu.example.com
"""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@arguments
@selector_options
@all_namespaces_option
@file_options
@click.option("--show-events/--no-show-events", default=True, help="Show the events of each object. [default: show]")
@target_options
def command(
    arguments: tuple[str, ...],
    session: Session,
    namespace: str,
    selector: str,
    field_selector: str,
    all_namespaces: bool,
    files: tuple[str, ...],
    recursive: bool,
    show_events: bool,
) -> None:
    """Show details of objects, with related objects and events.

    TYPE is a plural, singular or short name, or several separated by commas."""
    selection.one_source(arguments, files)
    resources = Resources(session)
    if files:
        named = selection.of_files(resources, session, files, recursive=recursive, namespace=namespace)
    else:
        scope = Scope(selection.place(session, namespace, everywhere=all_namespaces), selector, field_selector)
        wanted = node_views.resolved(session, selection.parse(resources, arguments))
        scope.check(wanted)
        named = [each for want in wanted for each in _named(session, scope, want)]
    if not named:
        click.echo("No resources found", err=True)
    errors: list[DevletError] = []
    reader = Reader(session, resources)
    for index, each in enumerate(named):
        try:
            document = session.get(each.path)
        except DevletError as e:
            errors.append(e)
            continue
        events = _events(session, each, document) if show_events else None
        lines = describe(each, document, reader, events, reader.now)
        click.echo("".join(["\n\n" if index else "", *(f"{line}\n" for line in lines)]), nl=False)
    if errors:
        raise ExceptionGroup("describe", errors)


def _named(session: Session, scope: Scope, want: Wanted) -> list[Named]:
    with node_views.served(want.resource):
        return list(selection.objects(session, scope, [want]))


def describe(
    named: Named, document: Document, reader: Reader, events: list[Document] | None, now: datetime
) -> Iterator[str]:
    yield from fields(heading(document, now))
    if module := VIEWS.get(named.resource.name):
        view: View = import_module(f"devlet.cli.views.{module}").view
        yield from view(document, reader)
    else:
        for key, value in document.items():
            if key not in ("apiVersion", "kind", "metadata"):
                yield from section(key[:1].upper() + key[1:], tree(value) if value not in ({}, [], None) else ())
    if events is not None:
        rows = [[e.get("type"), e.get("reason"), seen(e, now), source(e), e.get("message")] for e in events]
        yield from section("Events", table(["TYPE", "REASON", "AGE", "FROM", "MESSAGE"], rows))


def _events(session: Session, named: Named, document: Document) -> list[Document] | None:
    """Return None for a view, which has no UID and so cannot have events."""
    if not (uid := (document.get("metadata") or {}).get("uid")):
        return None
    # Events about things without a namespace are kept in the default one.
    path = EVENTS.collection(named.namespace or "default")
    try:
        pages = session.pages(path, [("fieldSelector", f"involvedObject.uid={uid}")])
        return sorted((event for page in pages for event in page.get("items") or ()), key=last_seen)
    except (NotFound, Forbidden):
        return []
