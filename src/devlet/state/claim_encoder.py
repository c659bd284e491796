"""Writes claim checkpoints, so that a change costs its own claim and not the whole file.

The file is JSON inside JSON: each claim is quoted twice. How it looks then is remembered for as long as it is written,
by the identity of the ClaimEntry: pass the same objects again. The bytes are those that the kubelet writes for the same
claims in the same order.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from devlet.state import go_json
from devlet.state.claim_entry import ClaimEntry, PreparedDevice
from devlet.state.go_json import valid

_SPARE = 256  # remembered claims that are no longer written, before they are forgotten


def _quoted(text: bytes) -> bytes:
    """As it stands inside of a string."""
    return go_json.dump(text.decode())[1:-1]


_HEAD = b'{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":'
_QUOTED_HEAD = _quoted(_HEAD)


class _Written:
    """A claim and how it is written. Holding the claim keeps its identity its own."""

    __slots__ = ("claim", "json", "quoted")

    def __init__(self, claim: ClaimEntry) -> None:
        self.claim = claim
        self.json = go_json.dump(_claim(claim))
        self.quoted = _quoted(self.json)


class Encoder:
    """One per file. Not for several threads."""

    def __init__(self) -> None:
        self._memory: dict[int, _Written] = {}

    def encode(self, claims: Sequence[ClaimEntry] | None) -> bytes:
        """None is null in the file, which the kubelet writes on a new node, and not an empty list."""
        if claims is None:
            return _file(b"null", b"null")
        written = [self._remembered(claim) for claim in claims]
        if len(self._memory) > len(written) + _SPARE:
            self._memory = {id(one.claim): one for one in written}
        return _file(_list([one.json for one in written]), _list([one.quoted for one in written]))

    def _remembered(self, claim: ClaimEntry) -> _Written:
        if (found := self._memory.get(id(claim))) is None:
            found = self._memory[id(claim)] = _Written(claim)
        return found


def _list(items: Sequence[bytes]) -> bytes:
    return b"[%b]" % b",".join(items)


def _file(claims: bytes, quoted: bytes) -> bytes:
    checksum = crc32(b"}", crc32(claims, crc32(_HEAD)))
    return b'{"Data":"%b%b}","Checksum":%d}' % (_QUOTED_HEAD, quoted, checksum)


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
