"""Events as people read them: when, how often, about what.

Events come in two shapes: old ones count in `count` and `lastTimestamp`, new ones have a `series`. Both are read here.
"""

from datetime import UTC, datetime

from devlet.cli.session import Document
from devlet.cli.tables import cell_text
from devlet.objects.subdocuments import number, text
from devlet.objects.table_cells import duration, instant

HEADER = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
_NEVER = datetime.min.replace(tzinfo=UTC)


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
