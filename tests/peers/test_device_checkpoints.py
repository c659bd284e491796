"""The device checkpoint in both directions: what devlet writes the kubelet's code reads, and the other way round.

Documents are drawn from fixed seeds and handed over by the hundred, because starting the program takes longer than
reading one.
"""

import json
import random
import re
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.state.device_checkpoint import Checkpoint, Encoder, Entry, attempts, checksum, decode

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers]

FILE = "kubelet_internal_checkpoint"
# What JSON escapes, what only Go escapes, what is more than one byte or word, and what the hash text is made of.
PIECES = [*'az09-_./: []{}<>&"\\\b\f\n\r\t\0\x1f\x7f', "\u2028", "\u2029", "\ufffd", "\u00df", "\u20ac", "\U0001f9ea"]
NODES = [-(2**63), -1, 0, 1, 2, 9, 10, 11, 2**63 - 1]

Registered = dict[str, tuple[str, ...] | None]
Document = tuple[tuple[Entry, ...] | None, Registered | None]


class Draw(random.Random):
    def text(self) -> str:
        if self.random() < 0.5:
            return f"dev-{self.randrange(10**6)}"
        return "".join(self.choices(PIECES, k=self.randrange(9)))

    def texts(self) -> tuple[str, ...] | None:
        return None if self.random() < 0.05 else tuple(self.text() for _ in range(self.randrange(4)))

    def entry(self) -> Entry:
        devices = {node: self.texts() for node in self.sample(NODES, self.randrange(5))}
        return Entry(
            pod=self.text(),
            container=self.text(),
            resource=self.text(),
            devices=None if self.random() < 0.05 else devices,
            response=None if self.random() < 0.05 else self.randbytes(self.randrange(40)),
        )

    def registered(self) -> Registered | None:
        return None if self.random() < 0.05 else {self.text(): self.texts() for _ in range(self.randrange(5))}

    def document(self) -> Document:
        return tuple(self.entry() for _ in range(self.randrange(6))) or None, self.registered()


class Kubelet:
    """Its checkpoint code, one folder per document."""

    def __init__(self, program: Path, root: Path) -> None:
        self._program = program
        self._root = root

    def read(self, blobs: Sequence[bytes]) -> list[Document | None]:
        """None where it does not accept a file; exit code and message agree with that."""
        folders = self._folders(len(blobs))
        for folder, blob in zip(folders, blobs, strict=True):
            (folder / FILE).write_bytes(blob)
        answer = self.run("checkpoint-read", folders)
        found = [document_of(json.loads(line)) for line in answer.stdout.split(b"\n") if line]
        assert [str(folder) in answer.stderr.decode() for folder in folders] == [each is None for each in found]
        assert answer.returncode == (None in found)
        return found

    def write(self, documents: Sequence[Document]) -> list[bytes]:
        folders = self._folders(len(documents))
        stdin = "\n".join(json.dumps(as_json(document)) for document in documents)
        answer = self.run("checkpoint-write", folders, stdin.encode())
        assert (answer.returncode, answer.stderr) == (0, b"")
        return [(folder / FILE).read_bytes() for folder in folders]

    def _folders(self, count: int) -> list[Path]:
        folders = [self._root / f"{number:04}" for number in range(count)]
        for folder in folders:
            folder.mkdir()
        return folders

    def run(self, command: str, folders: list[Path], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([self._program, command, *folders], input=stdin, capture_output=True, timeout=120)


def as_json(document: Document) -> dict[str, Any]:
    entries, registered = document
    return {"entries": None if entries is None else [_entry_as_json(e) for e in entries], "registered": registered}


def _entry_as_json(entry: Entry) -> dict[str, Any]:
    return {
        "pod": entry.pod,
        "container": entry.container,
        "resource": entry.resource,
        "devices": entry.devices,
        "response": None if entry.response is None else b64encode(entry.response).decode(),
    }


def document_of(answer: dict[str, Any] | None) -> Document | None:
    if answer is None:
        return None
    entries, registered = answer["entries"], answer["registered"]
    return (
        None if entries is None else tuple(_entry_of(each) for each in entries),
        None if registered is None else {name: _texts(ids) for name, ids in registered.items()},
    )


def _entry_of(answer: dict[str, Any]) -> Entry:
    devices, response = answer["devices"], answer["response"]
    return Entry(
        pod=answer["pod"],
        container=answer["container"],
        resource=answer["resource"],
        devices=None if devices is None else {int(node): _texts(ids) for node, ids in devices.items()},
        response=None if response is None else b64decode(response),
    )


def _texts(ids: list[str] | None) -> tuple[str, ...] | None:
    return None if ids is None else tuple(ids)


def contents(checkpoint: Checkpoint) -> Document:
    registered = checkpoint.registered
    return checkpoint.entries, None if registered is None else dict(registered)


def ours(blob: bytes) -> Document | None:
    """As the present version alone: the kubelet has forgotten the others."""
    found = next(attempts(blob))
    return contents(found) if isinstance(found, Checkpoint) else None


@pytest.fixture
def kubelet(peers: "Peers", root: Path) -> Kubelet:
    peers.need("kubelet-devices")
    return Kubelet(peers.binaries / "kubelet-devices", root)


def test_the_kubelet_reads_what_devlet_writes(kubelet: Kubelet) -> None:
    documents = [Draw(seed).document() for seed in range(300)]
    assert kubelet.read([Encoder().encode(*document) for document in documents]) == documents


def test_the_kubelet_reads_every_state_of_a_checkpoint_that_devlet_changes(kubelet: Kubelet) -> None:
    draw, encoder = Draw(1), Encoder()
    entries: list[Entry] = []
    states: list[Document] = []
    blobs: list[bytes] = []
    for _ in range(300):
        for _ in range(draw.randrange(3)):
            entries.insert(draw.choice([len(entries), draw.randint(0, len(entries))]), draw.entry())
        for _ in range(draw.randrange(3) if entries else 0):
            entries.remove(draw.choice(entries)) if entries else None
        if not states or draw.random() < 0.2:
            registered = draw.registered()
        states.append((tuple(entries) or None, registered))
        blobs.append(encoder.encode(entries, registered))
    assert sum(len(a or ()) > len(b or ()) for (a, _), (b, _) in pairwise(states)) > 20  # it shrank, too
    assert kubelet.read(blobs) == states


def test_devlet_reads_what_the_kubelet_writes_and_writes_the_same_bytes(kubelet: Kubelet) -> None:
    documents = [Draw(seed).document() for seed in range(1000, 1300)]
    for document, blob in zip(documents, kubelet.write(documents), strict=True):
        found = decode(blob)
        assert contents(found) == document
        assert Encoder().encode(found.entries, found.registered) == blob


def test_devlet_and_the_kubelet_agree_on_damaged_files(kubelet: Kubelet) -> None:
    draw = Draw(2)
    blobs = [_damaged(draw, Encoder().encode(*draw.document())) for _ in range(400)]
    verdicts = kubelet.read(blobs)
    assert [ours(blob) for blob in blobs] == verdicts
    assert 0 < sum(verdict is not None for verdict in verdicts) < len(blobs)


def test_devlet_and_the_kubelet_decode_damaged_files_alike(kubelet: Kubelet) -> None:
    """Where the damage is one to the checksum only, the file gets the one that devlet finds right: the kubelet must
    then find it right, too."""
    draw = Draw(3)
    blobs = [_damaged(draw, Encoder().encode(*draw.document())) for _ in range(800)]
    restamped = [new for blob in blobs if (new := _restamped(blob))]
    assert len(restamped) > 100
    assert [ours(blob) for blob in restamped] == kubelet.read(restamped)


def _restamped(blob: bytes) -> bytes | None:
    found = next(attempts(blob))
    if isinstance(found, Checkpoint) or found.data is None or not re.search(rb'"Checksum":\d+}$', blob):
        return None
    return re.sub(rb"\d+}$", b"%d}" % checksum(found.data), blob)


def _damaged(draw: Draw, blob: bytes) -> bytes:
    at = draw.randrange(len(blob))
    match draw.randrange(6):
        case 0:
            return blob[:at]
        case 1:
            return blob[:at] + bytes([blob[at] ^ 1 << draw.randrange(8)]) + blob[at + 1 :]
        case 2:
            return blob[:at] + draw.choice([b" ", b"\n", b"0", b",", b"\xff", b"\xed\xa0\x80", b"null"]) + blob[at:]
        case 3:
            return blob[:at] + blob[at + 1 :]
        case 4:
            return blob.replace(b'"Data"', b' "daTA" ').replace(b'"PodUID"', b'"poduid"').replace(b"},", b"\t} ,\r\n")
        case _:
            return blob.replace(b"a", b"\\u0061").replace(b'{"Data"', b'{"Later":[{}],"Data"')


def test_devlet_and_the_kubelet_agree_on_the_known_files(kubelet: Kubelet) -> None:
    path = Path(__file__).parents[1] / "vectors" / "device_manager_checkpoints.json"
    blobs = [vector["file_content"].encode() for vector in json.loads(path.read_text())]
    assert len(blobs) > 40
    assert [ours(blob) for blob in blobs] == kubelet.read(blobs)


def test_a_checkpoint_that_is_not_there_is_named(kubelet: Kubelet, root: Path) -> None:
    answer = kubelet.run("checkpoint-read", [root])
    text = f"kubelet-devices: checkpoint-read: {root}: checkpoint is not found\n"
    assert (answer.returncode, answer.stdout, answer.stderr.decode()) == (1, b"null\n", text)
