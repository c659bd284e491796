"""DRA drivers whose CDI files are wrong, or exist at the wrong time. See `faulty_dra_driver`."""

import os
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from devlet.objects.types.claim import DeviceResult
from devlet.sdk.cdi_files import CdiFiles
from devlet.sdk.values import Claim, ClaimRef, ContainerEdits, DeviceNode, Hook, Prepared
from tests.support.mutants.sound_dra_driver import PREPARE, SoundDraDriver

__all__ = ["BUGS", "ForgetfulFiles"]

Driver = SoundDraDriver


class ShortIds(Driver):
    """Return CDI IDs that are not fully qualified."""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for answer in response.claims.values() if method == PREPARE else ():
            for device in answer.devices:
                device.cdi_device_ids[:] = [device.device_name]


class RepeatedIds(Driver):
    """Return every CDI ID twice."""

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for answer in response.claims.values() if method == PREPARE else ():
            for device in answer.devices:
                device.cdi_device_ids.extend(list(device.cdi_device_ids))


class _Files(Driver):
    """Write CDI files with another class than the SDK's."""

    kind: type[CdiFiles]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cdi_files = self.kind(self.cdi, self.name)


class _ChangedFiles(CdiFiles):
    """Write CDI files correctly and then spoil them."""

    def write(self, claim: ClaimRef, prepared: Sequence[Prepared]) -> list[tuple[str, ...]]:
        ids = super().write(claim, prepared)
        self.spoil(self.path(claim.uid))
        return ids

    def spoil(self, path: Path) -> None:
        raise NotImplementedError


class _Late(_ChangedFiles):
    """Make a CDI file appear three seconds late."""

    def spoil(self, path: Path) -> None:
        draft = path.with_suffix(".draft")
        path.rename(draft)
        later = threading.Timer(3.0, lambda: draft.exists() and draft.rename(path))
        later.daemon = True
        later.start()


class _Extra(_ChangedFiles):
    """Write another file with an unknown field."""

    def spoil(self, path: Path) -> None:
        draft = path.with_suffix(".draft")
        draft.write_text('{"cdiVersion": "0.5.0", "kind": "led.example.com/more", "lights": 4, "devices": []}')
        draft.rename(path.with_name("more.json"))


class _New(_ChangedFiles):
    """Declare a newer cdiVersion than needed."""

    def spoil(self, path: Path) -> None:
        draft = path.with_suffix(".draft")
        draft.write_text(path.read_text().replace('"0.5.0"', '"1.0.0"'))
        draft.rename(path)


class _InTwoSteps(_ChangedFiles):
    """Write a CDI file in place, in two steps."""

    def spoil(self, path: Path) -> None:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        time.sleep(0.02)
        path.write_bytes(content)


class _Renamed(CdiFiles):
    """Use other names for CDI devices."""

    def write(self, claim: ClaimRef, prepared: Sequence[Prepared]) -> list[tuple[str, ...]]:
        ids = super().write(claim, prepared)
        old, new = f"claim_{claim.uid}", self.begin(claim.uid)
        path = self.path(claim.uid)
        draft = path.with_suffix(".draft")
        draft.write_text(path.read_text().replace(old, new))
        draft.rename(path)
        return [tuple(id.replace(old, new) for id in each) for each in ids]

    def begin(self, uid: str) -> str:
        return "led"


class _ByProcess(_Renamed):
    """Use names that contain the process ID."""

    def begin(self, uid: str) -> str:
        return f"claim_{uid}_{os.getpid()}"


class _Kept(CdiFiles):
    """Never remove CDI files."""

    def remove(self, uid: str) -> None: ...


class ForgetfulFiles(CdiFiles):
    """Remove only CDI files that this process has written."""

    def __init__(self, directory: Path, driver: str) -> None:
        super().__init__(directory, driver)
        self.known: set[str] = set()

    def write(self, claim: ClaimRef, prepared: Sequence[Prepared]) -> list[tuple[str, ...]]:
        self.known.add(claim.uid)
        return super().write(claim, prepared)

    def remove(self, uid: str) -> None:
        if uid in self.known:
            super().remove(uid)


class LateFiles(_Files):
    """Answer before its CDI files exist."""

    kind = _Late


class StrangeFiles(_Files):
    """Write a CDI file with an unknown field."""

    kind = _Extra


class NewFiles(_Files):
    """Declare a newer cdiVersion than needed."""

    kind = _New


class TornFiles(_Files):
    """Write CDI files that runtimes can read half-written."""

    kind = _InTwoSteps


class CommonNames(_Files):
    """Use CDI device names without the claim's UID."""

    kind = _Renamed


class NamesOfProcess(_Files):
    """Use CDI device names that change with every restart."""

    kind = _ByProcess


class KeepsFiles(_Files):
    """Leave its CDI files behind when it unprepares."""

    kind = _Kept


class ForgetsFiles(_Files):
    """Leave CDI files behind that were written before a restart."""

    kind = ForgetfulFiles


class KeepsMetadata(Driver):
    """Leave device metadata behind when it unprepares."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        for result in claim.results:
            name = f"{claim.ref.namespace}_{claim.ref.name}"
            folder = self.data / "dra-device-metadata" / name / result.request.partition("/")[0]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "metadata.json").write_text("{}")
        return await super().prepare(claim)


class _Spoilt(Driver):
    """Replace a word in the files of a claim."""

    change: tuple[str, str]

    def files(self, uid: str) -> Iterable[Path]:
        return (self.data / "dra-device-metadata" / uid).rglob("metadata.json")

    async def answered(self, method: str, package: str, request: Any, response: Any) -> None:
        for uid in response.claims if method == PREPARE else ():
            for path in self.files(uid):
                path.write_text(path.read_text().replace(*self.change))


class UntypedMetadata(_Spoilt):
    """Write device metadata without an apiVersion."""

    change = '"apiVersion"', '"version"'


class MetadataOfOthers(_Spoilt):
    """Write metadata of devices that the claim does not have."""

    change = '"led-', '"lamp-'


class MetadataToWriteOn(_Spoilt):
    """Mount device metadata read-write."""

    change = '"ro"', '"rw"'

    def files(self, uid: str) -> Iterable[Path]:
        return self.cdi.glob(f"*_metadata_{uid}_*.json")


class NoSuchNode(Driver):
    """Give containers a device node that does not exist."""

    def given(self, number: int, result: DeviceResult, color: str) -> Prepared:
        return Prepared(result, devices=[DeviceNode("/dev/no-such-led")])


class NoSuchHook(Driver):
    """Give containers a hook that does not exist."""

    def given(self, number: int, result: DeviceResult, color: str) -> Prepared:
        return Prepared(result, edits=ContainerEdits(hooks=(Hook("createRuntime", "/usr/bin/no-such-hook"),)))


class OneVariable(Driver):
    """Set the same variable for every device of a claim."""

    def given(self, number: int, result: DeviceResult, color: str) -> Prepared:
        return Prepared(result, env={"LED": result.device})


BUGS: dict[str, type[Driver]] = {
    "DRA-CDI-1": ShortIds,
    "DRA-CDI-2": LateFiles,
    "DRA-CDI-3": StrangeFiles,
    "DRA-CDI-4": NewFiles,
    "DRA-CDI-5": TornFiles,
    "DRA-CDI-6": NoSuchNode,
    "DRA-CDI-7": NoSuchHook,
    "DRA-CDI-8": CommonNames,
    "DRA-CDI-9": OneVariable,
    "DRA-CDI-10": RepeatedIds,
    "DRA-META-1": UntypedMetadata,
    "DRA-META-2": MetadataOfOthers,
    "DRA-META-3": MetadataToWriteOn,
    "DRA-UNPREP-2": KeepsFiles,
    "DRA-UNPREP-10": KeepsMetadata,
    "DRA-KILL-3": NamesOfProcess,
    "DRA-KILL-5": ForgetsFiles,
}
