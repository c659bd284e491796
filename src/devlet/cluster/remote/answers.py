"""What is in the bodies and headers of a server's answers.

Items of lists are found at once but decoded only when they are read, so that a list of thousands does not stop
everything else for as long as that takes.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, overload

import msgspec

from devlet.cluster.client import EventType, ObjectList, WatchEvent
from devlet.errors import DevletError, TooLarge
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.statuses import error_from

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _ListMeta(msgspec.Struct, rename={"continue_": "continue", "resource_version": "resourceVersion"}):
    resource_version: str = ""
    continue_: str = ""
    remaining: int | None = msgspec.field(default=None, name="remainingItemCount")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _Frame(msgspec.Struct):
    type: str
    object: dict[str, Any]


_lists = msgspec.json.Decoder(_List)
_documents = msgspec.json.Decoder(dict[str, Any])
_frames = msgspec.json.Decoder(_Frame)


def document(body: bytes) -> Document:
    try:
        return _documents.decode(body)
    except _MALFORMED as e:
        raise DevletError(f"the server's answer is not a JSON object: {e}") from None


class Items(Sequence[Document]):
    """The objects of a list with their kind and version, which lists leave out."""

    def __init__(self, raw: list[msgspec.Raw], resource: Resource) -> None:
        self._raw = raw
        self._resource = resource

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> "Items": ...
    def __getitem__(self, index: int | slice) -> "Document | Items":
        if isinstance(index, slice):
            return Items(self._raw[index], self._resource)
        head = {"kind": self._resource.kind.kind, "apiVersion": self._resource.api_version}
        return {**head, **document(bytes(self._raw[index]))}


def page(resource: Resource, body: bytes) -> ObjectList:
    try:
        found = _lists.decode(body)
    except _MALFORMED as e:
        raise DevletError(f"the server's list of {resource.name} is malformed: {e}") from None
    metadata = found.metadata
    return ObjectList(
        Items(found.items or [], resource), metadata.resource_version, metadata.continue_, metadata.remaining
    )


def event(line: bytes) -> WatchEvent:
    """Parse one line of a watch. Raise the error that an ERROR event reports."""
    try:
        frame = _frames.decode(line)
    except _MALFORMED as e:
        raise DevletError(f"a watch event is malformed: {e}") from None
    if frame.type == "ERROR":
        raise error_from(frame.object)
    if frame.type not in EventType.__members__:
        raise DevletError(f"a watch event has the unknown type {frame.type[:40]!r}")
    if not isinstance(frame.object.get("metadata"), dict):
        raise DevletError(f"a watch event ({frame.type}) has no object with metadata")
    return WatchEvent(EventType(frame.type), frame.object)


class Lines:
    """Splits chunks into lines. An incomplete last line is an event that was cut off, and is dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        longest = max(len(self._rest), *(len(line) for line in lines)) if lines else len(self._rest)
        if longest > self._limit:
            raise TooLarge(f"a watch event has more than {self._limit} bytes")
        return [line for line in lines if line.strip()]


_warning = re.compile(r'\s*[0-9]{3} [^\s"]+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?\s*(?:,|$)')


def warnings(headers: Iterable[str]) -> list[str]:
    """Return the texts of Warning headers, each of which may have several: `299 - "unknown field \\"foo\\""`."""
    found = []
    for header in headers:
        at = 0
        while match := _warning.match(header, at):
            found.append(re.sub(r"\\(.)", r"\1", match[1]))
            at = match.end()
    return found
