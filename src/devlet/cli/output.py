"""Output formats for objects: `-o json|yaml|wide|name|jsonpath=…|custom-columns=…`, or the server's table.

A printer turns objects into lines, which the command prints. Its `accept` is what to request from the server, because
tables need a different response.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from devlet.cli.resources import Resource
from devlet.cli.session import JSON, TABLE, Document
from devlet.cli.tables import Columns, Layout, plain_table, rows_of
from devlet.errors import InvalidInput
from devlet.objects import subdocuments

FORMATS = "json, yaml, wide, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…"


class Found(NamedTuple):
    """One response: an object, a list of objects, or a Table."""

    resource: Resource
    document: Document

    @property
    def objects(self) -> list[Document]:
        """Return the objects with kind and apiVersion, which servers leave out in lists."""
        if "items" not in self.document or not str(self.document.get("kind", "")).endswith("List"):
            return [self.document]
        head = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        return [head | item for item in self.document["items"] or ()]


class Printer(Protocol):
    @property
    def accept(self) -> str: ...

    @property
    def end(self) -> str:
        """The line ending."""
        ...

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        """Yield lines for the whole result. `single` means that one object was requested by name."""
        ...

    def one(self, found: Found) -> Iterator[str]:
        """Yield lines for an object that was added or changed during a watch."""
        ...


class Shown(NamedTuple):
    """What tables show in addition to the server's columns."""

    headers: bool = True
    namespaces: bool = False
    labels: bool = False
    kinds: bool = False


def printer(text: str, shown: Shown = Shown(), *, managed_fields: bool = False) -> Printer:
    kind, _, rest = text.partition("=")
    match kind, bool(rest):
        case (("" | "wide"), False):
            return TablePrinter(shown, wide=kind == "wide")
        case "json", False:
            return _Documents(json_text, managed_fields)
        case "yaml", False:
            return _Documents(_yaml_text, managed_fields)
        case "name", False:
            return _Each(lambda resource, o: f"{resource.kind_name}/{subdocuments.name(o)}")
        case (("jsonpath" | "custom-columns"), True):
            from devlet.cli import path_output

            return path_output.printer(kind, rest, headers=shown.headers)
    raise InvalidInput(f'unknown output format "{text}": expected {FORMATS}')


def check_format(text: str, *known: str) -> None:
    """Raise InvalidInput unless the format of a command without printers is empty or known."""
    if text and text not in known:
        raise InvalidInput(f'unknown output format "{text}": expected {", ".join(known[:-1])} or {known[-1]}')


class TablePrinter:
    accept = TABLE
    end = "\n"

    def __init__(self, shown: Shown = Shown(), *, wide: bool = False) -> None:
        self._shown = shown
        self._wide = wide
        self._layout = Layout()
        self._columns: Columns | None = None

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        by_kind = [(resource, list(group)) for resource, group in groupby(found, key=lambda f: f.resource)]
        prefixed = self._shown.kinds or len(by_kind) > 1
        first = True
        for resource, group in by_kind:
            tables = [_table(f) for f in group]
            if not any(rows_of(table) for table in tables):
                continue
            if not first and self._shown.headers:
                yield ""
            first = False
            self._begin(resource, tables[0], prefixed)
            yield from self._lines([row for table in tables for row in rows_of(table)], self._shown.headers)

    def one(self, found: Found) -> Iterator[str]:
        table = _table(found)
        header = self._columns is None and self._shown.headers
        if self._columns is None:
            self._begin(found.resource, table, self._shown.kinds)
        yield from self._lines(rows_of(table), header)

    def _begin(self, resource: Resource, table: Document, prefixed: bool) -> None:
        self._layout = Layout()
        self._columns = Columns(
            table,
            wide=self._wide,
            namespaces=self._shown.namespaces and resource.namespaced,
            labels=self._shown.labels,
            prefix=resource.kind_name if prefixed else "",
        )

    def _lines(self, rows: list[Document], header: bool) -> Iterator[str]:
        assert self._columns is not None
        head = [self._columns.header] if header and rows else []
        return self._layout.lines(head + [self._columns.row(row) for row in rows])


class _Documents:
    accept = JSON
    end = "\n"

    def __init__(self, text: Callable[[Document], str], managed_fields: bool) -> None:
        self._text = text
        self._managed_fields = managed_fields
        self._separator: list[str] = []

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        objects = [self._object(o) for f in found for o in f.objects]
        if single and len(objects) == 1:
            yield self._text(objects[0])
        else:
            yield self._text(as_list(objects))

    def one(self, found: Found) -> Iterator[str]:
        for o in found.objects:
            yield from self._separator
            yield self._text(self._object(o))
            self._separator = ["---"] if self._text is _yaml_text else []

    def _object(self, found: Document) -> Document:
        metadata = found.get("metadata")
        if self._managed_fields or not isinstance(metadata, dict) or "managedFields" not in metadata:
            return found
        return found | {"metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


class _Each:
    """One line per object."""

    accept = JSON
    end = "\n"

    def __init__(self, line: Callable[[Resource, Document], str]) -> None:
        self._line = line

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        for f in found:
            yield from self.one(f)

    def one(self, found: Found) -> Iterator[str]:
        for o in found.objects:
            yield self._line(found.resource, o)


def emit(printing: Printer, lines: Iterable[str]) -> None:
    """Write lines to standard output and flush it, so that watched changes appear immediately."""
    sys.stdout.write("".join(line + printing.end for line in lines))
    sys.stdout.flush()


def as_list(objects: Sequence[Document]) -> Document:
    return {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}}


def json_text(document: Document) -> str:
    return json.dumps(document, indent=4, sort_keys=True, ensure_ascii=False)


def document_text(document: Document, form: str) -> str:
    """Return a document in the format `json` or `yaml`."""
    return json_text(document) if form == "json" else _yaml_text(document)


def _yaml_text(document: Document) -> str:
    from devlet.cli.yaml_output import dump

    return dump(document).rstrip("\n")


def _table(found: Found) -> Document:
    return found.document if found.document.get("kind") == "Table" else plain_table(found.objects)
