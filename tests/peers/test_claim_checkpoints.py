"""The claim checkpoint in both directions: what devlet writes the kubelet's code reads, and the other way round.

Documents are drawn from fixed seeds and handed over by the hundred, because starting the program takes longer than
reading one.
"""

import json
import random
import re
import stat
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.state.claim_checkpoint import (
    Checkpoint,
    ClaimEntry,
    Damage,
    Encoder,
    Form,
    PreparedDevice,
    attempts,
    decode,
)

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [pytest.mark.peers]

FILE = "dra_manager_state"
# What JSON escapes once and twice, what only Go escapes, and what is more than one byte or word.
PIECES = [*'az09-_./: []{}<>&"\\\b\f\n\r\t\0\x1f\x7f', "\u2028", "\u2029", "\ufffd", "\u00df", "\u20ac", "\U0001f9ea"]

Claims = tuple[ClaimEntry, ...] | None


class Refused:
    """The kubelet would not start. Equal to itself only, and so different from a list that is null."""

    def __repr__(self) -> str:
        return "refused"


REFUSED = Refused()


class Draw(random.Random):
    def text(self) -> str:
        if self.random() < 0.5:
            return f"name-{self.randrange(10**6)}"
        return "".join(self.choices(PIECES, k=self.randrange(9)))

    def rarely(self) -> bool:
        return self.random() < 0.1

    def texts(self) -> tuple[str, ...] | None:
        return None if self.rarely() else tuple(self.text() for _ in range(self.randrange(4)))

    def device(self) -> PreparedDevice:
        return PreparedDevice(
            pool=self.text(),
            device=self.text(),
            share=self.text() if self.rarely() else None,
            requests=self.texts(),
            cdi_devices=self.texts(),
        )

    def devices(self) -> tuple[PreparedDevice, ...] | None:
        return None if self.rarely() else tuple(self.device() for _ in range(self.randrange(4)))

    def claim(self) -> ClaimEntry:
        drivers = {self.text(): self.devices() for _ in range(self.randrange(4))}
        return ClaimEntry(
            uid=self.text(),
            name=self.text(),
            namespace=self.text(),
            pods=None if self.rarely() else frozenset(self.text() for _ in range(self.randrange(4))),
            drivers=None if self.rarely() else drivers,
        )

    def claims(self) -> Claims:
        return None if self.rarely() else tuple(self.claim() for _ in range(self.randrange(6)))


class Kubelet:
    """Its checkpoint code, one folder per document."""

    def __init__(self, program: Path, root: Path) -> None:
        self._program = program
        self._root = root

    def read(self, blobs: Sequence[bytes]) -> list[Claims | Refused]:
        """Exit code and messages agree with what is refused."""
        folders = self._folders(len(blobs))
        for folder, blob in zip(folders, blobs, strict=True):
            (folder / FILE).write_bytes(blob)
        answer = self.run("checkpoint-read", folders)
        found = [claims_of(json.loads(line)) for line in answer.stdout.split(b"\n") if line]
        assert [str(folder) in answer.stderr.decode() for folder in folders] == [each is REFUSED for each in found]
        assert answer.returncode == (REFUSED in found)
        return found

    def write(self, documents: Sequence[Claims]) -> list[bytes]:
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


def as_json(claims: Claims) -> list[dict[str, Any]] | None:
    """As the kubelet's structs are, which are those of the file, too."""
    return None if claims is None else [_claim_as_json(claim) for claim in claims]


def _claim_as_json(claim: ClaimEntry) -> dict[str, Any]:
    drivers = None
    if claim.drivers is not None:
        drivers = {name: {"Devices": _devices_as_json(devices)} for name, devices in claim.drivers.items()}
    return {
        "ClaimUID": claim.uid,
        "ClaimName": claim.name,
        "Namespace": claim.namespace,
        "PodUIDs": None if claim.pods is None else {pod: {} for pod in claim.pods},
        "DriverState": drivers,
    }


def _devices_as_json(devices: tuple[PreparedDevice, ...] | None) -> list[dict[str, Any]] | None:
    if devices is None:
        return None
    return [
        {
            "PoolName": device.pool,
            "DeviceName": device.device,
            "ShareID": device.share,
            "RequestNames": device.requests,
            "CDIDeviceIDs": device.cdi_devices,
        }
        for device in devices
    ]


def claims_of(answer: list[dict[str, Any]] | bool | None) -> Claims | Refused:
    if isinstance(answer, bool):
        return REFUSED
    return None if answer is None else tuple(_claim_of(each) for each in answer)


def _claim_of(answer: dict[str, Any]) -> ClaimEntry:
    pods, drivers = answer["PodUIDs"], answer["DriverState"]
    return ClaimEntry(
        uid=answer["ClaimUID"],
        name=answer["ClaimName"],
        namespace=answer["Namespace"],
        pods=None if pods is None else frozenset(pods),
        drivers=None if drivers is None else {name: _devices_of(state["Devices"]) for name, state in drivers.items()},
    )


def _devices_of(answer: list[dict[str, Any]] | None) -> tuple[PreparedDevice, ...] | None:
    if answer is None:
        return None
    return tuple(
        PreparedDevice(
            pool=device["PoolName"],
            device=device["DeviceName"],
            share=device["ShareID"],
            requests=_texts(device["RequestNames"]),
            cdi_devices=_texts(device["CDIDeviceIDs"]),
        )
        for device in answer
    )


def _texts(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def ours(blob: bytes) -> Claims | Refused:
    """As the present version alone: the kubelet has forgotten the others."""
    found = [result for result in attempts(blob) if isinstance(result, Checkpoint) and result.form is Form.V1_31]
    return found[0].claims if found else REFUSED


@pytest.fixture
def kubelet(peers: "Peers", root: Path) -> Kubelet:
    peers.need("kubelet-claims")
    return Kubelet(peers.binaries / "kubelet-claims", root)


@pytest.mark.spec("DN-4.01")
def test_the_kubelet_reads_what_devlet_writes(kubelet: Kubelet) -> None:
    documents = [Draw(seed).claims() for seed in range(300)]
    assert kubelet.read([Encoder().encode(document) for document in documents]) == documents


@pytest.mark.spec("DN-4.01")
def test_the_kubelet_reads_every_state_of_a_checkpoint_that_devlet_changes(kubelet: Kubelet) -> None:
    draw, encoder = Draw(1), Encoder()
    claims: list[ClaimEntry] = []
    states: list[Claims | Refused] = []
    blobs: list[bytes] = []
    for _ in range(300):
        for _ in range(draw.randrange(3)):
            claims.insert(draw.choice([len(claims), draw.randint(0, len(claims))]), draw.claim())
        for _ in range(draw.randrange(3)):
            claims.remove(draw.choice(claims)) if claims else None
        states.append(tuple(claims))
        blobs.append(encoder.encode(claims))
    sizes = [len(state) for state in states if isinstance(state, tuple)]
    assert sum(after < before for before, after in pairwise(sizes)) > 20  # it shrank, too
    assert kubelet.read(blobs) == states


@pytest.mark.spec("DN-4.01")
@pytest.mark.spec("DN-4.02")
def test_devlet_reads_what_the_kubelet_writes_and_writes_the_same_bytes(kubelet: Kubelet) -> None:
    documents = [Draw(seed).claims() for seed in range(1000, 1300)]
    for document, blob in zip(documents, kubelet.write(documents), strict=True):
        found = decode(blob)
        assert found.claims == document
        assert Encoder().encode(found.claims) == blob == Encoder().encode(document)


@pytest.mark.spec("DN-4.05")
def test_devlet_and_the_kubelet_agree_on_damaged_files(kubelet: Kubelet) -> None:
    draw = Draw(2)
    blobs = [_damaged(draw, Encoder().encode(draw.claims())) for _ in range(400)]
    verdicts = kubelet.read(blobs)
    assert [ours(blob) for blob in blobs] == verdicts
    assert 0 < sum(verdict is not REFUSED for verdict in verdicts) < len(blobs)


@pytest.mark.spec("DN-4.04")
@pytest.mark.spec("DN-4.05")
def test_devlet_and_the_kubelet_decode_damaged_files_alike(kubelet: Kubelet) -> None:
    """Where only the checksum is wrong then, the file gets the one that devlet finds right: the kubelet must then find
    it right, too, and refuse what devlet cannot decode all the same."""
    draw = Draw(3)
    blobs = [_damaged(draw, Encoder().encode(draw.claims())) for _ in range(800)]
    restamped = [new for blob in blobs if (new := _restamped(blob))]
    verdicts = kubelet.read(restamped)
    assert [ours(blob) for blob in restamped] == verdicts
    refused = sum(verdict is REFUSED for verdict in verdicts)
    assert refused > 50 and len(verdicts) - refused > 50


def _restamped(blob: bytes) -> bytes | None:
    found = next(attempts(blob))
    if not isinstance(found, Damage) or not re.search(rb'"Checksum":\d+}$', blob):
        return None
    fits = re.search(r"its data give (\d+)$", found.reason)
    return re.sub(rb"\d+}$", fits[1].encode() + b"}", blob) if fits else None


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
            changed = blob.replace(b'"Data"', b' "daTA" ').replace(b'\\"ClaimUID\\"', b'\\"claimuid\\"')
            return changed.replace(b"},", b"\\t} ,\\r\\n") + b" \n"
        case _:
            return blob.replace(b"a", b"\\u0061").replace(b'{"Data"', b'{"Later":[{}],"Data"')


@pytest.mark.spec("DN-4.03")
def test_devlet_and_the_kubelet_agree_on_the_known_files(kubelet: Kubelet) -> None:
    """Those of before 1.31 are the ones that devlet reads and the kubelet does not."""
    path = Path(__file__).parents[1] / "vectors" / "dra_manager_state.json"
    vectors = [vector for vector in json.loads(path.read_text()) if vector["format"] != "dra_health_state"]
    blobs = [vector["file_content"].encode() for vector in vectors]
    assert len(blobs) > 10
    verdicts = kubelet.read(blobs)
    assert [ours(blob) for blob in blobs] == verdicts
    old = [next(attempts(blob)) for blob in blobs]
    more = [found for found, verdict in zip(old, verdicts, strict=True) if verdict is REFUSED]
    assert any(isinstance(found, Checkpoint) and found.form is not Form.V1_31 for found in more)


@pytest.mark.spec("DN-4.03")
def test_the_kubelet_makes_the_file_that_devlet_makes_on_a_new_node(kubelet: Kubelet, root: Path) -> None:
    answer = kubelet.run("checkpoint-read", [root])
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, b"null\n", b"")
    assert (root / FILE).read_bytes() == Encoder().encode(None)
    assert stat.S_IMODE((root / FILE).stat().st_mode) == 0o600
