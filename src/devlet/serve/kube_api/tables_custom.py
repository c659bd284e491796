"""The rows of custom resources, with the columns that their definition declares."""

import math
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeGuard

import msgspec

from devlet.errors import InvalidInput
from devlet.objects import json_path
from devlet.objects.documents import Document
from devlet.objects.subdocuments import mappings, name, number, text
from devlet.objects.table_cells import NAME, Cell, Column, Printer, instant, since

__all__ = ["custom_printer"]

_Find = Callable[[Any], list[Any]]

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def custom_printer(additional: Iterable[Document] | None) -> Printer:
    """Return a printer for the `additionalPrinterColumns` of a version; for the age alone if there are none."""
    declared = mappings({"columns": list(additional or ())}, "columns") or [_AGE]
    columns = [_column(column) for column in declared]
    finders = [_finder(text(column, "jsonPath")) for column in declared]

    def cells(document: Document, now: datetime) -> list[Cell]:
        found = (_cell(column, find(document), now) for column, find in zip(columns, finders, strict=True))
        return [name(document), *found]

    return Printer((NAME, *columns), cells)


def _column(declared: Document) -> Column:
    return Column(
        text(declared, "name"),
        text(declared, "type"),
        text(declared, "format"),
        number(declared, "priority"),
        text(declared, "description"),
    )


def _finder(path: str) -> _Find:
    """Return a function that finds the values of a path, and none if the path is not valid: the column is empty."""
    try:
        return json_path.linear_path(path).find
    except InvalidInput:
        return lambda document: []


def _cell(column: Column, found: list[Any], now: datetime) -> Cell:
    """Return the first value in the type of the column; null if it has another type."""
    value = found[0] if found else None
    match column.type:
        case "integer":
            return int(value) if _is_number(value) else None
        case "number":
            return value if _is_number(value) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return _age(value, now)
        case _:
            return _text(value) if found else None


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _age(value: Any, now: datetime) -> str | None:
    if not value:
        return None
    return since(value, now) if instant(value) else "<invalid>"


def _text(value: Any) -> str:
    if value is None:
        return "<no value>"
    return value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()
