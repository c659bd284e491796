"""Recover entries from a damaged device checkpoint.

A file with valid JSON and a wrong checksum still has all of its content. From a file that is truncated or partly
overwritten, every object that looks like an entry is recovered, wherever it is, and the rest is listed as lost.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from devlet.state import go_json
from devlet.state.device_checkpoint import (
    MAX_BYTES,
    Checkpoint,
    Entry,
    Form,
    attempts,
    one_entry_per_owner,
    read_entry,
)
from devlet.state.device_entry import validated
from devlet.state.go_json import Malformed, Members
from devlet.state.json_pieces import scan, value_at

_POD = re.compile(r'\{\s*"PodUID"\s*:\s*"([^"\\]{0,80})', re.IGNORECASE)
_REGISTERED = re.compile(r'"RegisteredDevices"\s*:\s*\{', re.IGNORECASE)
_NEXT = re.compile(r"\s*,\s*")
_COLON = re.compile(r"\s*:\s*")
_END = re.compile(r"\s*\}")

_NO_RESOURCES = "the registered resources"


class Salvage(Struct, frozen=True):
    """`lost` has a line for everything that cannot be read."""

    checkpoint: Checkpoint
    lost: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.checkpoint.entries and not self.checkpoint.registered


def salvage(blob: bytes) -> Salvage:
    """Return what can be read, without its faults."""
    found = _read(blob)
    left = validated(found.checkpoint)
    return Salvage(left.checkpoint, (*found.lost, *left.faults))


def _read(blob: bytes) -> Salvage:
    pieces = _pieces(go_json.loose(blob[:MAX_BYTES]))
    for result in attempts(blob):
        if isinstance(result, Checkpoint):
            return Salvage(result)
        # Valid JSON may contain less than can be recovered, if the name of a field is damaged.
        if result.data is not None and len(result.data.entries or ()) >= len(pieces.checkpoint.entries or ()):
            return Salvage(result.data, tuple(line for line in pieces.lost if line == _NO_RESOURCES))
    return pieces


def _pieces(text: str) -> Salvage:
    lost: list[str] = []
    pieces = list(_entries(text, lost))
    single = [entry for form, entry in pieces if form is Form.V1_8]
    whole = _unique((entry for form, entry in pieces if form is not Form.V1_8), lost)
    entries = (*whole, *one_entry_per_owner(single))
    registered = _registered(text, lost)
    return Salvage(Checkpoint(entries or None, registered), tuple(lost))


def _entries(text: str, lost: list[str]) -> Iterator[tuple[Form, Entry]]:
    def label(start: int) -> str | None:
        pod = _POD.match(text, start)
        return f"an entry of pod {pod[1] or '?'} at character {start}" if pod else None

    return scan(text, _entry, label, lost)


def _entry(value: Any) -> tuple[Form, Entry] | None:
    """Return the entry and the form in which it can be decoded, or None if the object is not an entry."""
    names = {name for name, _ in go_json.members(value)} if isinstance(value, Members) else set()
    if "poduid" not in names or not names & {"deviceid", "deviceids"}:
        return None
    if "deviceids" not in names:
        return Form.V1_8, read_entry(value, Form.V1_8)
    try:
        return Form.V2, read_entry(value, Form.V2)
    except Malformed as error:
        try:
            return Form.V1, read_entry(value, Form.V1)
        except Malformed:
            raise error from None


def _unique(entries: Iterator[Entry], lost: list[str]) -> Iterator[Entry]:
    """Yield each entry once: a partly overwritten file may contain it twice."""
    seen: set[tuple[str, str, str]] = set()
    for entry in entries:
        owner = (entry.pod, entry.container, entry.resource)
        if owner in seen:
            lost.append(f"a second entry of pod {entry.pod}, container {entry.container}, {entry.resource}")
            continue
        seen.add(owner)
        yield entry


def _registered(text: str, lost: list[str]) -> dict[str, tuple[str, ...] | None]:
    """Decode the registered resources up to the damage."""
    found: dict[str, tuple[str, ...] | None] = {}
    if not (start := _REGISTERED.search(text)):
        lost.append(_NO_RESOURCES)
        return found
    position = start.end()
    try:
        while not _END.match(text, position):
            if found:
                position = _after(_NEXT, text, position)
            name, position = value_at(text, position)
            value, position = value_at(text, _after(_COLON, text, position))
            found[go_json.string(name)] = go_json.strings(value)
    except Malformed as e:
        lost.append(f"registered resources from character {position}: {e}")
    return found


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    if match := pattern.match(text, position):
        return match.end()
    raise Malformed("the file ends before they do" if not text[position:].strip() else "not JSON")
