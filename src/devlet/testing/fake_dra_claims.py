"""The claims that a fake DRA driver prepared, each with a CDI file and optionally a file that outlives the driver.

A claim gets `CDI/<driver>-<uid>.json` with one CDI device for each device it was given: the first is named by the
claim's UID, the others by UID and number. In a container these show as `CLAIM_<claim>=<uid>` and, for a device that
serves certain requests, `CLAIM_<claim>_<request>=<device>`. Files are renamed into place, but not synced: they outlive
a killed process, not a power cut.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path

import msgspec

from devlet.objects.identifiers import DriverName
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, ClaimRef

__all__ = ["Environment", "FakeDraClaims", "PreparedClaim", "default_environment"]

Environment = Callable[[ClaimRef, PreparedDevice], Mapping[str, str]]

CDI_VERSION = "0.5.0"  # the first one that lets a device's name begin with a digit, as UIDs do

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class PreparedClaim(msgspec.Struct, frozen=True):
    """The answer for a claim."""

    claim: ClaimRef
    devices: tuple[PreparedDevice, ...]


def default_environment(claim: ClaimRef, device: PreparedDevice) -> Mapping[str, str]:
    name = f"CLAIM_{_word(claim.name)}"
    return {name: claim.uid} | {f"{name}_{_word(request)}": device.device for request in device.requests or ()}


class FakeDraClaims(Mapping[str, PreparedClaim]):
    """The prepared claims by UID. With `directory` each claim is kept there in a file, so that every driver that uses
    the directory, now or later, has the same claims."""

    def __init__(self, driver: DriverName, cdi_directory: Path, directory: Path | None = None) -> None:
        self.cdi_directory = cdi_directory
        self.kind = f"{driver if driver[:1].isalpha() else f'driver-{driver}'}/claim"
        self.environment: Environment = default_environment
        self._driver = driver
        self._claims: MutableMapping[str, PreparedClaim] = _Directory(directory) if directory else {}

    def __getitem__(self, uid: str) -> PreparedClaim:
        return self._claims[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    def add(self, claim: ClaimRef, devices: Sequence[PreparedDevice]) -> tuple[PreparedDevice, ...] | ClaimProblem:
        """Add a claim and return its devices. Devices whose CDI devices are None get one. The file is written before
        the answer."""
        if not _FILE_NAME.fullmatch(claim.uid):
            return ClaimProblem(f"claim {claim.name}: UID {claim.uid!r} cannot be used in the name of a file")
        named = [self._named(claim, number, device) for number, device in enumerate(devices)]
        self._write_cdi(claim, named)
        answered = tuple(device for _, device in named)
        self._claims[claim.uid] = PreparedClaim(claim, answered)
        return answered

    def remove(self, uid: str) -> None:
        """Remove a claim, if it is prepared."""
        if _FILE_NAME.fullmatch(uid):
            self.cdi_file(uid).unlink(missing_ok=True)
            self._claims.pop(uid, None)

    def cdi_file(self, uid: str) -> Path:
        """Return the path of the CDI file of a claim, if it is prepared."""
        return self.cdi_directory / f"{self._driver}-{uid}.json"

    def cdi_id(self, uid: str, number: int = 0) -> str:
        """Return the name of one of the CDI devices that it creates."""
        return f"{self.kind}={uid}{f'-{number}' if number else ''}"

    def _named(self, claim: ClaimRef, number: int, device: PreparedDevice) -> tuple[str, PreparedDevice]:
        id = self.cdi_id(claim.uid, number)
        given = (id,) if device.cdi_devices is None else device.cdi_devices
        return id.partition("=")[2], msgspec.structs.replace(device, cdi_devices=given)

    def _write_cdi(self, claim: ClaimRef, named: Sequence[tuple[str, PreparedDevice]]) -> None:
        """Write a CDI file. CDI needs at least one device in a file, each with an effect."""
        variables = {name: self.environment(claim, device) for name, device in named}
        devices = [
            {"name": name, "containerEdits": {"env": [f"{key}={value}" for key, value in environment.items()]}}
            for name, environment in variables.items()
            if environment
        ]
        if devices:
            spec = {"cdiVersion": CDI_VERSION, "kind": self.kind, "devices": devices}
            _write(self.cdi_file(claim.uid), json.dumps(spec, indent=2).encode())


class _Directory(MutableMapping[str, PreparedClaim]):
    """One file for each claim, which is read whenever it is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __getitem__(self, uid: str) -> PreparedClaim:
        try:
            return msgspec.json.decode(self._file(uid).read_bytes(), type=PreparedClaim)
        except FileNotFoundError:
            raise KeyError(uid) from None

    def __setitem__(self, uid: str, claim: PreparedClaim) -> None:
        _write(self._file(uid), msgspec.json.encode(claim))

    def __delitem__(self, uid: str) -> None:
        try:
            self._file(uid).unlink()
        except FileNotFoundError:
            raise KeyError(uid) from None

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.stem for path in self._path.glob("*.json")))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _file(self, uid: str) -> Path:
        if not _FILE_NAME.fullmatch(uid):
            raise KeyError(uid)
        return self._path / f"{uid}.json"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_bytes(content)
    draft.replace(path)


def _word(text: str) -> str:
    return re.sub("[^A-Za-z0-9]", "_", text)
