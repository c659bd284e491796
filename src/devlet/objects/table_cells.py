"""What table printers share: columns, reaching into documents, and the texts that occur everywhere.

Cells have the types of their columns, but the reference puts numbers into some string columns (`Data`, `Count`), and
so do we. A value of the wrong shape counts as absent: a table must not fail because of one odd object.

Commands use it too, and must start at once: nothing that takes long to load is imported here.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from devlet.errors import InvalidInput
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
    "at",
    "documents_at",
    "duration",
    "instant",
    "label_text",
    "name",
    "none_if_empty",
    "number",
    "selector_text",
    "since",
    "text",
    "texts",
    "wide",
]

Document = dict[str, Any]
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


NAME = Column(
    "Name", format="name", description="Unique among the objects of its kind, within a namespace if it has one."
)
AGE = Column("Age", description="How long ago the object was created.")


def wide(name: str, description: str = "", *, format: str = "") -> Column:
    return Column(name, format=format, priority=1, description=description)


def at(document: Any, *path: str) -> Any:
    """The value at a path; None if there is none."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def text(document: Document, *path: str) -> str:
    value = at(document, *path)
    return value if isinstance(value, str) else ""


def number(document: Document, *path: str) -> int:
    value = at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def texts(document: Document, *path: str) -> list[str]:
    value = at(document, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def documents_at(document: Document, *path: str) -> list[Document]:
    value = at(document, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def name(document: Document) -> str:
    return text(document, "metadata", "name")


def age(document: Document, now: datetime) -> str:
    return since(at(document, "metadata", "creationTimestamp"), now)


def since(moment: object, now: datetime) -> str:
    """How long ago a Time or MicroTime was; `<unknown>` if it is not set."""
    if (then := instant(moment)) is None:
        return UNKNOWN
    return duration((now - then).total_seconds())


def instant(moment: object) -> datetime | None:
    """A Time or MicroTime of a document."""
    if not moment:
        return None
    try:
        return parse_micro_time(moment)
    except InvalidInput:
        return None


def duration(seconds: float) -> str:
    """As short as it still says enough: two units while the larger one is small, then one."""
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
    """A map of labels, sorted: `a=b,c=d`."""
    if not isinstance(labels, dict):
        return NONE
    return none_if_empty(",".join(f"{key}={labels[key]}" for key in sorted(labels)))


def selector_text(selector: object) -> str:
    """A label selector as it is written on a command line."""
    if not isinstance(selector, dict):
        return NONE
    labels = at(selector, "matchLabels")
    parts = [(key, f"{key}={value}") for key, value in labels.items()] if isinstance(labels, dict) else []
    parts += [(text(term, "key"), _requirement(term)) for term in documents_at(selector, "matchExpressions")]
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
