"""Columns of tables, and the cells that several kinds have.

Cells have the types of their columns, but Kubernetes puts numbers into some string columns (`Data`, `Count`), and so
does devlet. A value of the wrong type counts as absent, so that one malformed object does not break a table.

Commands import this module and must start quickly, so it imports nothing that takes long to load.
"""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from devlet.errors import InvalidInput
from devlet.objects.subdocuments import Document, at, mappings, text, texts
from devlet.objects.values.timestamps import parse_micro_time

__all__ = [
    "AGE",
    "NAME",
    "NONE",
    "UNKNOWN",
    "Cell",
    "Column",
    "Printer",
    "age",
    "duration",
    "instant",
    "label_text",
    "none_if_empty",
    "selector_text",
    "since",
    "wide",
]

Cell = str | int | float | bool | None

NONE = "<none>"
UNKNOWN = "<unknown>"


class Column(NamedTuple):
    """Priority 0 is always shown, 1 only with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def document(self) -> Document:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


class Printer(NamedTuple):
    """How objects of one kind become rows: `cells` has one entry per column."""

    columns: tuple[Column, ...]
    cells: Callable[[Document, datetime], list[Cell]]
    conditions: Callable[[Document], list[Document]] | None = None


NAME = Column("Name", format="name", description="The object's name; unique within its kind and namespace.")
AGE = Column("Age", description="How long ago the object was created.")


def wide(name: str, description: str = "", *, format: str = "") -> Column:
    return Column(name, format=format, priority=1, description=description)


def age(document: Document, now: datetime) -> str:
    return since(at(document, "metadata", "creationTimestamp"), now)


def since(moment: object, now: datetime) -> str:
    """Return how long ago a Time or MicroTime was; `<unknown>` if it is not set."""
    if (then := instant(moment)) is None:
        return UNKNOWN
    return duration((now - then).total_seconds())


def instant(moment: object) -> datetime | None:
    """Return a Time or MicroTime of a document; None if it is not set or not valid."""
    if not moment:
        return None
    try:
        return parse_micro_time(moment)
    except InvalidInput:
        return None


def duration(seconds: float) -> str:
    """Return a duration as kubectl prints it: two units while the larger one is small, then one."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    minutes, hours = whole // 60, whole // 3600
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _days(hours)


def _days(hours: int) -> str:
    days, years = hours // 24, hours // 24 // 365
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if years < 2:
        return f"{days}d"
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def none_if_empty(value: str) -> str:
    return value or NONE


def label_text(labels: object) -> str:
    """Return the labels in order: `a=b,c=d`."""
    if not isinstance(labels, dict):
        return NONE
    return none_if_empty(",".join(f"{key}={labels[key]}" for key in sorted(labels)))


def selector_text(selector: object) -> str:
    """Return a label selector as it is written on a command line."""
    if not isinstance(selector, dict):
        return NONE
    labels = at(selector, "matchLabels")
    parts = [(key, f"{key}={value}") for key, value in labels.items()] if isinstance(labels, dict) else []
    parts += [(text(term, "key"), _requirement(term)) for term in mappings(selector, "matchExpressions")]
    return none_if_empty(",".join(part for _, part in sorted(parts, key=lambda keyed: keyed[0])))


def _requirement(term: Document) -> str:
    key, values = text(term, "key"), ",".join(sorted(texts(term, "values")))
    match text(term, "operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return key
