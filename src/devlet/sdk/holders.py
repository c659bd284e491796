"""Which claim has which device, so that a second claim is refused even if schedulers make a mistake.

    held/4be1….json     {"claim": {"namespace": "default", "name": "training", "uid": "4be1…"}, "devices": ["n1/gpu-0"]}

Each claim has a file, which is written before its devices are used and removed once it is unprepared. So a claim can be
unprepared even if the disk is full. Shares of a device are distinguished. A claim with admin access holds no device.
"""

import logging
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from devlet.errors import InUse
from devlet.kit import atomic_file
from devlet.kit.facts import facts
from devlet.objects.types.claim import DeviceResult
from devlet.sdk import file_names
from devlet.sdk.disk_errors import explained
from devlet.sdk.values import Claim, ClaimRef

__all__ = ["Holders"]

log = logging.getLogger(__name__)

FILE_MODE, DIRECTORY_MODE = 0o600, 0o750


class Holding(Struct, frozen=True):
    claim: ClaimRef
    devices: tuple[str, ...]


class Holders:
    """Instances of a driver share the directory. They must exclude each other, or they may both take a device."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._turn = anyio.Lock()

    async def take(self, claim: Claim) -> None:
        """Record that the claim has its devices. Idempotent. Raise InUse if another claim has one of them."""
        async with self._turn:
            await to_thread.run_sync(self._take, claim)

    async def release(self, uid: str) -> None:
        """Release the devices of a claim, if it has any."""
        await to_thread.run_sync(self._release, uid)

    def _take(self, claim: Claim) -> None:
        wanted = Holding(claim.ref, tuple(_key(each) for each in claim.results if not each.admin_access))
        path = self._path(claim.uid)
        with explained(f"what claims have cannot be read in {self.directory}"):
            found = {each: _read(each) for each in self.directory.glob("*.json")}
        self._check_free(wanted, found)
        if found.get(path) == wanted:
            return
        with explained(f"{path} cannot be written"):
            self.directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            atomic_file.write(path, msgspec.json.encode(wanted), FILE_MODE)

    def _check_free(self, wanted: Holding, found: dict[Path, Holding | None]) -> None:
        for path, other in found.items():
            if other is None or other.claim.uid == wanted.claim.uid:
                continue
            if both := [each for each in wanted.devices if each in other.devices]:
                holder = f"claim {other.claim.namespace}/{other.claim.name} with UID {other.claim.uid}"
                remedy = f"if no pod has that claim any more and it still stays so, remove {path}"
                raise InUse(f"{', '.join(both)} is prepared for {holder}, which has to be unprepared first; {remedy}")

    def _release(self, uid: str) -> None:
        path = self._path(uid)
        with explained(f"{path} cannot be removed"):
            if self.directory.is_dir():
                path.unlink(missing_ok=True)
                atomic_file.remove_leftovers(path)

    def _path(self, uid: str) -> Path:
        return self.directory / f"{file_names.check_uid(uid)}.json"


def _read(path: Path) -> Holding | None:
    """Return the content of a file; None if it was removed meanwhile, or is damaged: other claims must still work."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holding)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as e:
        log.warning("damaged file skipped", extra=facts(path=str(path), err=e))
        return None


def _key(result: DeviceResult) -> str:
    return "/".join(part for part in (result.pool, result.device, result.share_id) if part)
