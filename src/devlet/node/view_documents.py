"""What all documents of the node's views have in common: their shape, their order, and names that may be in a URL."""

from collections.abc import Iterable
from datetime import datetime
from urllib.parse import quote

from devlet.node.devices.order import natural
from devlet.objects.documents import Document
from devlet.objects.timestamps import format_time

__all__ = ["API_VERSION", "REFUSED", "by_name", "document", "escaped", "known", "moment"]

API_VERSION = "devlet.dev/v1alpha1"
REFUSED = "Refused"  # the state of a plugin or driver that was not registered


def document(kind: str, metadata: Document, spec: Document, status: Document) -> Document:
    """Without what is not known of its status."""
    return {"kind": kind, "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": known(status)}


def known(values: Document) -> Document:
    return {key: value for key, value in values.items() if value is not None}


def by_name(documents: Iterable[Document]) -> list[Document]:
    """As people count: gpu-2 before gpu-10."""
    return sorted(documents, key=lambda d: (d["metadata"].get("namespace", ""), natural(d["metadata"]["name"])))


def moment(when: datetime | None) -> str | None:
    return format_time(when) if when else None


def escaped(text: str) -> str:
    """Reversible: a "~" that is there already is escaped as well."""
    return quote(text, safe=":@+=,").replace("~", "%7E").replace("%", "~")
