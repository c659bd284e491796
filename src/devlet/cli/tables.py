"""Tables in kubectl's layout, from the Table documents of the server.

Columns are three spaces apart and at least six wide. During a watch columns keep their width, so that later rows line
up with earlier ones.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from devlet.cli.session import Document
from devlet.cli.terminal import visible

GAP = 3
NARROWEST = 6
_LINE_BREAKS = "\f\n\r"


class Layout:
    """Formats rows as lines. Columns never get narrower."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def lines(self, rows: Sequence[Sequence[str]]) -> Iterator[str]:
        for row in rows:
            self._widths += [NARROWEST] * (len(row) - len(self._widths))
            for index, cell in enumerate(row[:-1]):
                self._widths[index] = max(self._widths[index], len(cell) + GAP)
        for row in rows:
            padded = [cell.ljust(width) for cell, width in zip(row[:-1], self._widths, strict=False)]
            yield "".join(padded) + (row[-1] if row else "")


class Columns:
    """The columns of a server's Table that are shown, and those that kubectl adds."""

    def __init__(self, table: Document, *, wide: bool, namespaces: bool, labels: bool, prefix: str = "") -> None:
        definitions = [c for c in table.get("columnDefinitions") or () if isinstance(c, dict)]
        self._shown = [i for i, column in enumerate(definitions) if wide or not column.get("priority")]
        self._name = next((i for i, column in enumerate(definitions) if column.get("format") == "name"), -1)
        self._titles = [str(definitions[i].get("name", "")).upper() for i in self._shown]
        self._namespaces = namespaces
        self._labels = labels
        self._prefix = prefix

    @property
    def header(self) -> list[str]:
        return ["NAMESPACE"] * self._namespaces + self._titles + ["LABELS"] * self._labels

    def row(self, row: Document) -> list[str]:
        cells = row.get("cells") or []
        found = [self._cell(i, cells[i] if i < len(cells) else None) for i in self._shown]
        metadata = (row.get("object") or {}).get("metadata") or {}
        namespace = [str(metadata.get("namespace") or "")] * self._namespaces
        return namespace + found + [label_text(metadata.get("labels"))] * self._labels

    def _cell(self, index: int, value: Any) -> str:
        text = cell_text(value)
        return f"{self._prefix}/{text}" if self._prefix and index == self._name else text


def cell_text(value: Any) -> str:
    """Return a value on one line: text after a line break is cut off, and control characters are escaped."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case str():
            first = value
            for mark in _LINE_BREAKS:
                first = first.partition(mark)[0]
            return printable(first) + ("..." if len(first) < len(value) else "")
        case _:
            return str(value)


def printable(text: str) -> str:
    """Return the text on one line, with characters that act on a terminal as escapes."""
    return text if text.isprintable() else visible(text).replace("\n", "^J")


def label_text(labels: Any) -> str:
    if not isinstance(labels, dict) or not labels:
        return "<none>"
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def rows_of(table: Document) -> list[Document]:
    return [row for row in table.get("rows") or () if isinstance(row, dict)]


def plain_table(objects: Sequence[Document]) -> Document:
    """Return a Table of names and creation times, for a server that does not provide tables."""
    columns = [{"name": "Name", "format": "name"}, {"name": "Created At"}]
    rows = []
    for found in objects:
        metadata = found.get("metadata") or {}
        rows.append({"cells": [metadata.get("name"), metadata.get("creationTimestamp")], "object": found})
    return {"kind": "Table", "columnDefinitions": columns, "rows": rows}
