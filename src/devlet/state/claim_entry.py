"""The content of a claim checkpoint as values, and its encoder.

null and empty differ in the file, so they differ here. A file may contain a claim twice: see `by_name`.

The file is JSON inside JSON: each claim is quoted twice. The result is cached as long as the claim is in the file, so
that a change costs only the encoding of its own claim. The bytes equal those that the kubelet writes for the same
claims in the same order.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple
from zlib import crc32

from msgspec import Struct

from devlet.objects.identifiers import ObjectKey
from devlet.objects.types.claim import PreparedDevice
from devlet.state import go_json
from devlet.state.go_json import valid

__all__ = ["Checkpoint", "ClaimEntry", "Encoder", "Form", "PreparedDevice", "by_name"]

_SPARE = 256  # cached claims that are no longer in the file, before they are dropped


class Form(StrEnum):
    """Versions of the file, named after the first Kubernetes release that wrote them. All but the current one contain
    the version "v1"."""

    V1_31 = "1.31"  # the current one; devices have a share ID since 1.35
    V1_30 = "1.30"  # resource handles may have structured data; that changed all checksums
    V1_28 = "1.28"  # with resource handles
    V1_27 = "1.27"  # names of CDI devices by driver
    BETA = "1.27-beta"  # names of the CDI devices of one driver


class ClaimEntry(Struct, frozen=True):
    """A claim that is prepared, or about to be prepared, for the pods with these UIDs."""

    uid: str
    name: str
    namespace: str
    pods: frozenset[str] | None
    drivers: Mapping[str, tuple[PreparedDevice, ...] | None] | None


class Checkpoint(Struct, frozen=True):
    """`form` is the version of the file, `checksum` the one in it, which is meaningless unless `verified`."""

    claims: tuple[ClaimEntry, ...] | None
    form: Form = Form.V1_31
    checksum: int = 0
    verified: bool = True


def by_name(claims: Iterable[ClaimEntry]) -> dict[ObjectKey, ClaimEntry]:
    """Index the claims by namespace and name. The last one of several with the same key counts."""
    return {(claim.namespace, claim.name): claim for claim in claims}


def _quoted(text: bytes) -> bytes:
    """Escape for use inside a JSON string."""
    return go_json.dump(text.decode())[1:-1]


_HEAD = b'{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":'
_FRONT = b'{"Data":"' + _quoted(_HEAD)


class _Written:
    """A claim and its encoding. The reference to the claim keeps its id from being reused."""

    __slots__ = ("claim", "json", "quoted")

    def __init__(self, claim: ClaimEntry) -> None:
        self.claim = claim
        self.json = go_json.dump(_claim(claim))
        self.quoted = _quoted(self.json)


class Encoder:
    """Encodes one file. Claims are cached by identity: pass the same objects again. Not thread-safe."""

    def __init__(self) -> None:
        self._memory: dict[int, _Written] = {}
        self._file = _File()

    def encode(self, claims: Sequence[ClaimEntry] | None) -> bytes:
        """Encode the claims. None becomes null and not an empty list, as a kubelet writes on a new node."""
        if claims is None:
            return b"%bnull%b" % (_FRONT, _back(crc32(b"null", crc32(_HEAD))))
        written = [self._remembered(claim) for claim in claims]
        if len(self._memory) > len(written) + _SPARE:
            self._memory = {id(one.claim): one for one in written}
        self._file = self._file.replaced(written)
        return self._file.blob

    def _remembered(self, claim: ClaimEntry) -> _Written:
        if (found := self._memory.get(id(claim))) is None:
            found = self._memory[id(claim)] = _Written(claim)
        return found


class _End(NamedTuple):
    """The end of a claim in the file."""

    length: int  # of the file up to there
    checksum: int  # of the data up to there


class _File:
    """An encoded file. Its unchanged beginning is reused for the next one: most changes are at the end."""

    def __init__(self, claims: Sequence[_Written] = (), ends: Sequence[_End] = (), blob: bytes = _FRONT + b"[") -> None:
        self._claims = claims
        self._ends = ends or [_End(len(blob), crc32(b"[", crc32(_HEAD)))]  # the position before the first claim
        self.blob = blob

    def replaced(self, claims: list[_Written]) -> "_File":
        same = self._same(claims)
        ends = list(self._ends[: same + 1])
        length, checksum = ends[-1]
        pieces: list[bytes | memoryview] = [memoryview(self.blob)[:length]]
        for number, one in enumerate(claims[same:], same):
            comma = b"," if number else b""
            pieces += (comma, one.quoted)
            length += len(comma) + len(one.quoted)
            checksum = crc32(one.json, crc32(comma, checksum))
            ends.append(_End(length, checksum))
        return _File(claims, ends, b"".join((*pieces, b"]", _back(crc32(b"]", checksum)))))

    def _same(self, claims: list[_Written]) -> int:
        """Return how many claims at the beginning are the same."""
        for number, (before, now) in enumerate(zip(self._claims, claims, strict=False)):
            if before is not now:
                return number
        return min(len(self._claims), len(claims))


def _back(checksum: int) -> bytes:
    """Return the end of the file, after the claims. `checksum` is of the data up to there."""
    return b'}","Checksum":%d}' % crc32(b"}", checksum)


def _claim(claim: ClaimEntry) -> dict[str, Any]:
    return {
        "ClaimUID": claim.uid,
        "ClaimName": claim.name,
        "Namespace": claim.namespace,
        "PodUIDs": None if claim.pods is None else {pod: {} for pod in sorted(map(valid, claim.pods))},
        "DriverState": _drivers(claim.drivers),
    }


def _drivers(drivers: Mapping[str, tuple[PreparedDevice, ...] | None] | None) -> dict[str, Any] | None:
    if drivers is None:
        return None
    by_name = {valid(name): devices for name, devices in drivers.items()}
    return {name: {"Devices": _devices(by_name[name])} for name in sorted(by_name)}


def _devices(devices: tuple[PreparedDevice, ...] | None) -> list[dict[str, Any]] | None:
    return None if devices is None else [_device(device) for device in devices]


def _device(device: PreparedDevice) -> dict[str, Any]:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "ShareID": device.share,
        "RequestNames": device.requests,
        "CDIDeviceIDs": device.cdi_devices,
    }
