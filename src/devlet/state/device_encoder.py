"""Encode device checkpoints (v2), so that a change costs only the encoding of its own entry.

A checkpoint is written at every admission and contains all entries of the node. The JSON of an entry and its effect on
the checksum are cached as long as the entry is in the file, by the identity of the Entry: pass the same objects again.
The bytes equal those that the kubelet writes for the same entries in the same order.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from operator import is_not

from devlet.state import go_hash, go_json
from devlet.state.device_entry import HEAD, Entry, by_name, entry_text, tail_text

_START = b'{"Data":{"PodDeviceEntries":'
_SPARE = 256  # cached entries that are no longer in the file, before they are dropped


class _Written:
    """An entry and its encoding. The reference to the entry keeps its id from being reused."""

    __slots__ = ("entry", "json", "piece", "size")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.json = _entry_json(entry) + b","
        self.size = len(self.json)
        self.piece = go_hash.Piece(b" " + entry_text(entry))


class _Tail:
    """The end of the file, after the entries."""

    def __init__(self, registered: Mapping[str, tuple[str, ...] | None] | None) -> None:
        self.registered = registered
        self.json = go_json.dump(None if registered is None else dict(by_name(registered)))
        self.piece = go_hash.Piece(tail_text(registered))


class Encoder:
    """Encodes one file. Not thread-safe."""

    def __init__(self) -> None:
        self._memory: dict[int, _Written] = {}
        # The last file: the entries, their JSON with a comma after each, and the hash after each.
        self._entries: list[Entry] = []
        self._written: list[_Written] = []
        self._json = bytearray()
        self._states: list[int] = []
        self._tail = _Tail({})

    def encode(self, entries: Sequence[Entry] | None, registered: Mapping[str, Sequence[str] | None] | None) -> bytes:
        """Encode the checkpoint. No entries become null and never an empty list, as in the kubelet."""
        self._turn_to(list(entries or ()))
        tail = self._tail_of(registered)
        if not self._states:
            return _file((b"null",), tail.json, tail.piece.after(_EMPTY))
        state = go_hash.after(self._states[-1], b"]")
        with memoryview(self._json) as json:
            return _file((b"[", json[:-1], b"]"), tail.json, tail.piece.after(state))

    def _turn_to(self, entries: list[Entry]) -> None:
        """Keep the unchanged beginning and end, and replace what is between them."""
        known = len(self._entries)
        if entries[:known] == self._entries:  # usually entries are only appended
            new = [self._remembered(entry) for entry in entries[known:]]
            self._json += b"".join([written.json for written in new])
            self._written += new
            self._entries = entries
            self._hash_from(known)
            return
        head = _common(self._entries, entries)
        rest = min(len(self._entries), len(entries)) - head
        tail = min(_common(self._entries[::-1], entries[::-1]), rest) if rest else 0
        old = slice(head, len(self._entries) - tail)
        new = [self._remembered(entry) for entry in entries[head : len(entries) - tail]]

        start = sum([written.size for written in self._written[:head]])
        end = start + sum([written.size for written in self._written[old]])
        self._json[start:end] = b"".join([written.json for written in new])
        self._written[old] = new
        self._entries = entries
        self._hash_from(head)
        if len(self._memory) > len(entries) + _SPARE:
            self._memory = {id(written.entry): written for written in self._written}

    def _remembered(self, entry: Entry) -> _Written:
        if (found := self._memory.get(id(entry))) is None:
            found = self._memory[id(entry)] = _Written(entry)
        return found

    def _hash_from(self, index: int) -> None:
        del self._states[index:]
        if not index and self._written:
            self._states.append(go_hash.after(_BEGUN, self._written[0].piece.text[1:]))  # no space before the first
            index = 1
        state = self._states[-1] if self._states else 0
        add = self._states.append
        for written in self._written[index:]:
            add(state := written.piece.after(state))

    def _tail_of(self, registered: Mapping[str, Sequence[str] | None] | None) -> _Tail:
        frozen = None
        if registered is not None:
            frozen = {name: None if ids is None else tuple(ids) for name, ids in registered.items()}
        if frozen != self._tail.registered:
            self._tail = _Tail(frozen)
        return self._tail


_BEGUN = go_hash.after(go_hash.BASIS, HEAD + b"[")
_EMPTY = go_hash.after(go_hash.BASIS, HEAD + go_hash.NIL)


def _file(entries: Sequence[bytes | memoryview], registered: bytes, checksum: int) -> bytes:
    return b"".join((_START, *entries, b',"RegisteredDevices":', registered, b'},"Checksum":%d}' % checksum))


def _common(one: Sequence[Entry], other: Sequence[Entry]) -> int:
    """Return how many entries at the beginning are the same objects."""
    return next((i for i, differ in enumerate(map(is_not, one, other)) if differ), min(len(one), len(other)))


def _entry_json(entry: Entry) -> bytes:
    devices = None
    if entry.devices is not None:
        devices = {str(node): entry.devices[node] for node in sorted(entry.devices, key=str)}
    return go_json.dump(
        {
            "PodUID": entry.pod,
            "ContainerName": entry.container,
            "ResourceName": entry.resource,
            "DeviceIDs": devices,
            "AllocResp": None if entry.response is None else b64encode(entry.response).decode(),
        }
    )
