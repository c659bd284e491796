"""The devices of all CDI specs at one point in time, by name.

If several directories define a device, the last one takes precedence. If two files of the same directory define it, the
device is in conflict, and cannot be used until one of the files is removed.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.runtime.cdi import names
from devlet.runtime.cdi.names import QualifiedName
from devlet.runtime.cdi.spec import ContainerEdits, Device, Spec

__all__ = ["KnownDevice", "Registry", "Resolution", "SpecFile", "build", "edits"]


class SpecFile(Struct, frozen=True):
    """`priority` is the position of its directory in the list."""

    path: Path
    priority: int
    spec: Spec


class KnownDevice(Struct, frozen=True):
    name: QualifiedName
    device: Device
    file: SpecFile


class Resolution(Struct, frozen=True):
    """`missing` has the reason for each name that could not be resolved."""

    devices: tuple[KnownDevice, ...]
    missing: Mapping[str, str] = {}

    def complete(self) -> tuple[KnownDevice, ...]:
        """Return the devices. Raise NotFound if one is missing: no container may start with only some of its
        devices."""
        if self.missing:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.missing.items())
            raise NotFound(f"unresolvable CDI devices {', '.join(self.missing)} ({reasons})")
        return self.devices


class Registry(Struct, frozen=True):
    """`errors` are by file, or by directory if it could not be read. Only files without errors, or with nothing but
    conflicts, contribute devices."""

    devices: Mapping[str, KnownDevice] = {}
    conflicts: Mapping[str, tuple[Path, ...]] = {}
    errors: Mapping[Path, tuple[str, ...]] = {}

    def resolve(self, wanted: Iterable[str]) -> Resolution:
        """Resolve each name once, in their order."""
        unique = list(dict.fromkeys(wanted))
        missing = {name: self._reason(name) for name in unique if name not in self.devices}
        return Resolution(tuple(self.devices[name] for name in unique if name in self.devices), missing)

    def _reason(self, name: str) -> str:
        try:
            names.parse(name)
        except InvalidInput:
            return "not of the form vendor/class=device"
        if paths := self.conflicts.get(name):
            return f"in conflict, it is defined in {' and '.join(map(str, paths))}"
        broken = [str(path) for path in sorted(self.errors)]
        return f"no such device; with errors: {', '.join(broken)}" if broken else "no such device"


def build(files: Iterable[SpecFile], errors: Mapping[Path, Sequence[str]] = {}) -> Registry:
    """Build a registry from valid files and the errors of others."""
    found: dict[str, list[KnownDevice]] = {}
    for file in files:
        vendor, class_name = names.split_kind(file.spec.kind)
        for device in file.spec.devices:
            known = KnownDevice(QualifiedName(vendor, class_name, device.name), device, file)
            found.setdefault(str(known.name), []).append(known)
    best = {name: _best(rivals) for name, rivals in sorted(found.items())}
    conflicts = {name: tuple(known.file.path for known in rivals) for name, rivals in best.items() if len(rivals) > 1}
    return Registry(
        devices={name: rivals[0] for name, rivals in best.items() if len(rivals) == 1},
        conflicts=conflicts,
        errors=_with_conflicts(errors, conflicts),
    )


def edits(devices: Iterable[KnownDevice]) -> ContainerEdits:
    """Return the edits of all these devices. Edits of a whole file are included once, before those of its first
    device."""
    total = ContainerEdits()
    files: set[Path] = set()
    for known in devices:
        if known.file.path not in files:
            files.add(known.file.path)
            total += known.file.spec.container_edits
        total += known.device.container_edits
    return total


def _best(rivals: Sequence[KnownDevice]) -> list[KnownDevice]:
    highest = max(known.file.priority for known in rivals)
    return [known for known in rivals if known.file.priority == highest]


def _with_conflicts(
    errors: Mapping[Path, Sequence[str]], conflicts: Mapping[str, Sequence[Path]]
) -> dict[Path, tuple[str, ...]]:
    total = {path: list(texts) for path, texts in errors.items()}
    for name, paths in conflicts.items():
        for path in paths:
            others = " and ".join(str(other) for other in paths if other != path)
            total.setdefault(path, []).append(f"{path}: device {name} is in conflict, it is also defined in {others}")
    return {path: tuple(texts) for path, texts in sorted(total.items())}
