"""The parts of a description: aligned fields, indented trees and tables."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from devlet.cli.session import Document
from devlet.cli.tables import Layout, printable
from devlet.objects.subdocuments import at, text
from devlet.objects.table_cells import since

NONE = "<none>"
INDENT = "  "
_WIDTH = 14
_HIDDEN = ("managedFields",)

Fields = Sequence[tuple[str, Any]]


def fields(pairs: Fields) -> Iterator[str]:
    """Yield `Name:  value` for each pair, with one line per entry of a list or map."""
    for title, value in pairs:
        lines = _lines(value)
        yield f"{_title(title)}{lines[0]}"
        yield from (" " * _WIDTH + line for line in lines[1:])


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    inner = list(lines)
    if not inner:
        yield f"{_title(title)}{NONE}"
        return
    yield f"{title}:"
    yield from (INDENT + line for line in inner)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    if rows:
        shown = [[_cell(value) for value in row] for row in rows]
        yield from (line.rstrip() for line in Layout().lines([list(header), *shown]))


def tree(value: Any, indent: str = "") -> Iterator[str]:
    """Yield any JSON value as an indented outline with the field names of the API."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _HIDDEN:
                yield from _branch(f"{key}:", inner, indent)
    elif isinstance(value, list):
        for inner in value:
            yield from _branch("-", inner, indent)
    else:
        yield f"{indent}{_scalar(value)}"


def _branch(label: str, value: Any, indent: str) -> Iterator[str]:
    if not isinstance(value, dict | list) or not value:
        yield f"{indent}{printable(label)} {_scalar(value)}"
        return
    inner = list(tree(value, indent + INDENT))
    if label == "-":
        yield f"{indent}- {inner[0].lstrip()}"
        yield from inner[1:]
    else:
        yield f"{indent}{printable(label)}"
        yield from inner


def heading(document: Document, now: Any) -> Fields:
    """Return the fields that every object has."""
    metadata = at(document, "metadata") or {}
    owners = [f"{text(o, 'kind')}/{text(o, 'name')}" for o in metadata.get("ownerReferences") or ()]
    pairs = [
        ("Name", metadata.get("name")),
        ("Namespace", metadata.get("namespace")),
        ("Labels", metadata.get("labels") or {}),
        ("Annotations", metadata.get("annotations") or {}),
        ("API version", document.get("apiVersion")),
        ("Kind", document.get("kind")),
        ("Created", moment(metadata.get("creationTimestamp"), now)),
    ]
    if metadata.get("deletionTimestamp"):
        pairs.append(("Deleted", moment(metadata["deletionTimestamp"], now)))
        pairs.append(("Finalizers", metadata.get("finalizers") or []))
    if owners:
        pairs.append(("Owned by", owners))
    return [pair for pair in pairs if pair[1] is not None]


def conditions(document: Document) -> Iterator[str]:
    found = at(document, "status", "conditions") or []
    rows = [[c.get("type"), c.get("status"), c.get("reason"), c.get("message")] for c in found]
    return section("Conditions", table(["TYPE", "STATUS", "REASON", "MESSAGE"], rows))


def amounts(values: Any) -> str:
    """Return a map as one line: `cpu=1, memory=2Gi`."""
    if not isinstance(values, dict) or not values:
        return NONE
    return ", ".join(f"{key}={values[key]}" for key in sorted(values))


def _title(text: str) -> str:
    return f"{text}: ".ljust(_WIDTH)


def moment(when: Any, now: Any) -> str | None:
    return f"{when} ({since(when, now)} ago)" if when else None


def _lines(value: Any) -> list[str]:
    match value:
        case dict():
            return [printable(f"{key}={value[key]}".replace("\n", " ")) for key in sorted(value)] or [NONE]
        case list():
            return [_cell(item) for item in value] or [NONE]
        case _:
            return [_cell(value)]


def _cell(value: Any) -> str:
    return printable(_scalar(value).replace("\n", " ")) or NONE


def _scalar(value: Any) -> str:
    match value:
        case None:
            return NONE
        case bool():
            return str(value).lower()
        case {} | []:
            return NONE
        case _:
            return printable(str(value).replace("\n", "\\n"))
