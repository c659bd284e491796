"""What the documents of the node's views have in common: their order, times, and names that may be in a URL."""

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import quote

from devlet.node.devices.order import natural
from devlet.objects.documents import Document
from devlet.objects.values.timestamps import format_time
from devlet.objects.views.description import Time

__all__ = ["REFUSED", "by_name", "escaped", "moment"]

REFUSED = "Refused"  # the state of a plugin or driver that was not registered


def by_name(documents: Iterable[Document]) -> list[Document]:
    """Sort the documents as people count: gpu-2 before gpu-10."""
    return sorted(documents, key=lambda d: (d["metadata"].get("namespace", ""), natural(d["metadata"]["name"])))


def moment(when: datetime | None) -> Time | None:
    return Time(format_time(when)) if when else None


def escaped(text: str) -> str:
    """Escape text for a URL. This can be undone: a "~" in the text is escaped as well."""
    return quote(text, safe=":@+=,").replace("~", "%7E").replace("%", "~")
