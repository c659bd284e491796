"""One CDI spec for each prepared claim: what containers get with its devices, in a file that runtimes read.

    files = CdiFiles(Path("/var/run/cdi"), "led.example.com")
    ids = files.write(claim.ref, prepared)      # [("led.example.com/dra=claim_4be1…_led_red",), …]
    files.remove(claim.uid)

Every name has the claim's UID in it: a runtime that remembers devices can never take an old one for a new one. All of
this blocks on the disk, so call it in a thread. Instances of a driver that run beside each other share the files.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import structs

from devlet.errors import InvalidInput
from devlet.kit import atomic_file
from devlet.runtime.cdi import codec, names, versions
from devlet.runtime.cdi import spec as cdi
from devlet.runtime.cdi.validation import problems
from devlet.sdk import file_names
from devlet.sdk.disk_errors import explained
from devlet.sdk.mistakes import env_problems, type_problem
from devlet.sdk.values import ClaimRef, DeviceNode, Mount, Prepared

__all__ = ["CdiFiles", "edits_of"]

CLASS = "dra"
FILE_MODE, DIRECTORY_MODE = 0o644, 0o755

_GIVEN = ("env", "devices", "mounts", "edits", "cdi_devices")


class CdiFiles:
    """The CDI files of a driver. The directory is created when needed; files of other programs in it are not
    touched."""

    def __init__(self, directory: Path, driver: str) -> None:
        self.directory = directory
        self.kind = f"{file_names.vendor(driver)}/{CLASS}"
        self._driver = driver
        name = rf"{re.escape(driver)}_{CLASS}_({file_names.UID})\.json"
        self._names = re.compile(rf"{name}|\.{name}\.[^.]*\.tmp")

    def path(self, uid: str) -> Path:
        return self.directory / f"{self._driver}_{CLASS}_{file_names.check_uid(uid)}.json"

    def write(self, claim: ClaimRef, prepared: Sequence[Prepared]) -> list[tuple[str, ...]]:
        """Write the claim's file, or replace it, and return the names of CDI devices for each of `prepared`: the device
        in the file, unless it is empty, and then `cdi_devices`.

        Raise InvalidInput if the driver's answer cannot be expressed in a CDI spec, and Unavailable if the file cannot
        be written; an existing file is then unchanged."""
        path = self.path(claim.uid)
        _check_types(claim, prepared)
        devices = list(_devices(claim, prepared))
        self._check(claim, prepared, devices)
        given = tuple(device for device in devices if device.container_edits)
        if given:
            self._replace(path, claim, cdi.Spec("", self.kind, given))
        else:
            self.remove(claim.uid)
        return [self._ids(device, each) for device, each in zip(devices, prepared, strict=True)]

    def remove(self, uid: str) -> None:
        """Remove the claim's file, if there is one."""
        path = self.path(uid)
        with explained(f"claim {uid}: CDI file {path} cannot be removed"):
            if self.directory.is_dir():
                path.unlink(missing_ok=True)
                atomic_file.remove_leftovers(path)

    def leftovers(self) -> set[str]:
        """Return the UIDs of the claims that have files, including unfinished files of a driver that was killed. The
        driver has to remove those of claims that are no longer prepared."""
        with explained(f"CDI directory {self.directory} cannot be read"):
            found = [each.name for each in self.directory.iterdir()] if self.directory.exists() else []
        return {match[1] or match[2] for name in found if (match := self._names.fullmatch(name))}

    def _check(self, claim: ClaimRef, prepared: Sequence[Prepared], devices: Sequence[cdi.Device]) -> None:
        found = [
            f"device {each.result.pool}/{each.result.device} of request {each.result.request}: {problem}"
            for each, device in zip(prepared, devices, strict=True)
            for problem in _problems(self.kind, each, device)
        ]
        if found:
            raise InvalidInput(f"{_text(claim)}: {'; '.join(found)}; correct what the driver's prepare returns")

    def _replace(self, path: Path, claim: ClaimRef, spec: cdi.Spec) -> None:
        content = _encoded(claim, structs.replace(spec, cdi_version=versions.minimum(spec)))
        with explained(f"{_text(claim)}: CDI file {path} cannot be written"):
            self.directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            atomic_file.write(path, content, FILE_MODE)

    def _ids(self, device: cdi.Device, prepared: Prepared) -> tuple[str, ...]:
        own = [f"{self.kind}={device.name}"] if device.container_edits else []
        return tuple(dict.fromkeys([*own, *prepared.cdi_devices]))


def _check_types(claim: ClaimRef, prepared: Iterable[Prepared]) -> None:
    for each in prepared:
        if problem := type_problem(each, _GIVEN):
            where = f"device {each.result.pool}/{each.result.device} of request {each.result.request}"
            raise InvalidInput(f"{_text(claim)}: {where}: {problem}; correct what the driver's prepare returns")


def edits_of(prepared: Prepared) -> cdi.ContainerEdits:
    """Return everything that a container gets with a prepared result."""
    simple = cdi.ContainerEdits(
        env=tuple(f"{name}={value}" for name, value in prepared.env.items()),
        device_nodes=tuple(_node(each) for each in prepared.devices),
        mounts=tuple(_mount(each) for each in prepared.mounts),
    )
    return simple + (prepared.edits or cdi.ContainerEdits())


def _node(device: DeviceNode | str) -> cdi.DeviceNode:
    node = DeviceNode(device) if isinstance(device, str) else device
    inside = node.container_path or node.path
    return cdi.DeviceNode(inside, "" if inside == node.path else node.path, permissions=node.permissions)


def _mount(mount: Mount) -> cdi.Mount:
    options = ("ro" if mount.read_only else "rw", "bind")
    return cdi.Mount(mount.path, mount.container_path or mount.path, options)


def _devices(claim: ClaimRef, prepared: Iterable[Prepared]) -> Iterator[cdi.Device]:
    """Yield the CDI devices. Their names start with a letter, because a digit would need a newer CDI version. A number
    at the end distinguishes the shares of a device, and devices with the same name in several pools."""
    seen: Counter[str] = Counter()
    for each in prepared:
        request, device = each.result.request.replace("/", "."), each.result.device
        name = "_".join(part for part in ("claim", claim.uid, request, device) if part)
        seen[name] += 1
        yield cdi.Device(f"{name}_{seen[name]}" if seen[name] > 1 else name, edits_of(each))


def _problems(kind: str, prepared: Prepared, device: cdi.Device) -> Iterator[str]:
    yield from env_problems(prepared.env)
    for path in _paths(prepared):
        if path and not path.startswith("/"):
            yield f"{path!r} is not an absolute path"
    for name in prepared.cdi_devices:
        try:
            names.parse(name)
        except InvalidInput as e:
            yield f"cdi_devices: {e}"
    if device.container_edits:
        spec = cdi.Spec("", kind, (device,))
        spec = structs.replace(spec, cdi_version=versions.minimum(spec))
        yield from (problem.removeprefix("devices[0].").removeprefix("containerEdits.") for problem in problems(spec))


def _paths(prepared: Prepared) -> Iterator[str]:
    for each in (*prepared.devices, *prepared.mounts):
        if isinstance(each, str):
            yield each
        else:
            yield from (each.path, each.container_path)


def _encoded(claim: ClaimRef, spec: cdi.Spec) -> bytes:
    """Encode a spec, and decode it as a runtime would: a spec that a runtime refuses is not written."""
    try:
        content = codec.encode(spec)
        codec.decode(content)
    except (InvalidInput, UnicodeEncodeError) as e:
        raise InvalidInput(f"{_text(claim)}: no runtime accepts its CDI spec: {e}; correct what prepare returns") from e
    return content


def _text(claim: ClaimRef) -> str:
    return f"claim {claim.namespace}/{claim.name}"
