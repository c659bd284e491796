"""How objects are printed: `-o json|yaml|wide|name|jsonpath=…|custom-columns=…`, or as the server's table.

A printer gets what was found and gives lines; who prints them is the command. Tables need another answer of the server than
all the rest, so a printer says what to ask for (`accept`).
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from devlet.cli import jsonpath
from devlet.cli.resources import Resource
from devlet.cli.session import JSON, TABLE, Document
from devlet.cli.tables import Columns, Layout, plain_table, printable, rows_of
from devlet.errors import InvalidInput

FORMATS = "json, yaml, wide, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…"
NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Found:
    """One answer: an object, a list of them, or a Table."""

    resource: Resource
    document: Document

    @property
    def objects(self) -> list[Document]:
        """Complete with kind and version, which a server leaves out in lists."""
        if "items" not in self.document or not str(self.document.get("kind", "")).endswith("List"):
            return [self.document]
        head = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        return [head | item for item in self.document["items"] or ()]


class Printer(Protocol):
    @property
    def accept(self) -> str: ...

    @property
    def end(self) -> str:
        """What ends a line."""
        ...

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        """Lines for the whole result. `single`: one object was asked for by its name."""
        ...

    def one(self, found: Found) -> Iterator[str]:
        """Lines for an object that was added or changed while it is followed."""
        ...


@dataclass(frozen=True, slots=True)
class Shown:
    """What tables show besides the server's columns."""

    headers: bool = True
    namespaces: bool = False
    labels: bool = False
    kinds: bool = False


def printer(text: str, shown: Shown = Shown(), *, managed_fields: bool = False) -> Printer:
    kind, _, rest = text.partition("=")
    match kind, bool(rest):
        case ("" | "wide"), False:
            return TablePrinter(shown, wide=kind == "wide")
        case "json", False:
            return _Documents(json_text, managed_fields)
        case "yaml", False:
            return _Documents(_yaml_text, managed_fields)
        case "name", False:
            return _Each(lambda resource, o: f"{resource.kind_name}/{_name(o)}")
        case "jsonpath", True:
            return _Template(jsonpath.template(rest))
        case "custom-columns", True:
            return _CustomColumns(rest, shown.headers)
    raise InvalidInput(f'output format "{text}": expected {FORMATS}')


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
            if not first:
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


class _Template:
    """Whoever writes a template writes its line ends too."""

    accept = JSON
    end = ""

    def __init__(self, template: jsonpath.Template) -> None:
        self._template = template

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        objects = [o for f in found for o in f.objects]
        yield self._template.render(objects[0] if single and len(objects) == 1 else as_list(objects))

    def one(self, found: Found) -> Iterator[str]:
        for o in found.objects:
            yield self._template.render(o)


class _CustomColumns:
    accept = JSON
    end = "\n"

    def __init__(self, text: str, headers: bool) -> None:
        self._columns = [_custom_column(part) for part in _split(text)]
        self._headers = headers
        self._layout = Layout()

    def all(self, found: Sequence[Found], *, single: bool) -> Iterator[str]:
        return self._lines([o for f in found for o in f.objects])

    def one(self, found: Found) -> Iterator[str]:
        return self._lines(found.objects)

    def _lines(self, objects: list[Document]) -> Iterator[str]:
        rows = [[title for title, _ in self._columns]] if self._headers else []
        self._headers = False
        return self._layout.lines(rows + [[_values(path, o) for _, path in self._columns] for o in objects])


def _values(path: jsonpath.Path, document: Document) -> str:
    return printable(",".join(jsonpath.text_of(value) for value in path.find(document)).replace("\n", " ")) or NONE


def _custom_column(text: str) -> tuple[str, jsonpath.Path]:
    title, colon, path = text.partition(":")
    if not colon or not title or not path:
        raise InvalidInput(f'custom column "{text}": expected TITLE:PATH, as in NAME:.metadata.name')
    return title, jsonpath.path(path)


def _split(text: str) -> Iterator[str]:
    """At commas outside of brackets: those inside belong to a path."""
    depth, begun = 0, 0
    for index, character in enumerate(text):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and depth == 0:
            yield text[begun:index]
            begun = index + 1
    yield text[begun:]


def as_list(objects: Sequence[Document]) -> Document:
    return {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}}


def json_text(document: Document) -> str:
    return json.dumps(document, indent=4, sort_keys=True, ensure_ascii=False)


def _yaml_text(document: Document) -> str:
    from devlet.cli.yaml_output import dump

    return dump(document).rstrip("\n")


def _table(found: Found) -> Document:
    return found.document if found.document.get("kind") == "Table" else plain_table(found.objects)


def _name(document: Document) -> str:
    return str((document.get("metadata") or {}).get("name") or "")
