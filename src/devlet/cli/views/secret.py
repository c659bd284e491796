"""A secret: its keys and the lengths of their values, never the values themselves."""

from collections.abc import Iterator

from devlet.cli.session import Document
from devlet.cli.views.reader import Reader
from devlet.cli.views.sheet import fields, section, table
from devlet.objects.subdocuments import at, text


def view(secret: Document, reader: Reader) -> Iterator[str]:
    yield from fields([("Type", text(secret, "type"))])
    data = at(secret, "data")
    rows = [[key, _bytes(data[key])] for key in sorted(data)] if isinstance(data, dict) else []
    yield from section("Data", table(["KEY", "BYTES"], rows))


def _bytes(value: object) -> int:
    """Return the number of bytes that a base64 string encodes."""
    return len(value) // 4 * 3 - value[-2:].count("=") if isinstance(value, str) else 0
