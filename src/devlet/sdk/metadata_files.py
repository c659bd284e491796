"""Write device metadata on the node: a file for each request of a prepared claim, and a CDI spec that mounts it into
the containers of the request.

Files are kept by the claim's UID, so a new claim of the same name never gets files of its predecessor. A new file is
written under another name and renamed. An update writes into the existing file in one call, because running containers
have that file mounted, and would not see another one. All functions block on the disk.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

from msgspec import structs

from devlet.errors import DevletError, InvalidInput, NotFound
from devlet.kit import atomic_file
from devlet.objects.claims.from_template import ENTRY_ANNOTATION
from devlet.objects.types.slice import DeviceAttribute
from devlet.runtime.cdi import codec
from devlet.runtime.cdi import spec as cdi
from devlet.sdk import file_names, metadata
from devlet.sdk.disk_errors import explained
from devlet.sdk.metadata import DeviceMetadata, MetadataDevice, MetadataRequest, ObjectName
from devlet.sdk.values import Claim, ClaimRef, Prepared, Version

__all__ = ["MetadataFiles"]

FOLDER = "dra-device-metadata"
CDI_VERSION = "0.5.0"  # a UID may begin with a digit
FILE_MODE, DIRECTORY_MODE = 0o644, 0o755


class MetadataFiles:
    """The metadata files of a driver. `data` is its own directory on the node. Unknown versions are left out; raise
    InvalidInput if none is left."""

    def __init__(
        self, driver: str, data: Path, cdi_directory: Path, versions: Sequence[str] = metadata.VERSIONS
    ) -> None:
        self._driver = file_names.check_driver(driver)
        self._kind = f"{file_names.vendor(driver)}/metadata"
        self._folder = data / FOLDER
        self._cdi = cdi_directory
        self._turn = Lock()  # a generation is read and then written, in threads
        self.versions = tuple(version for version in versions if version in metadata.VERSIONS)
        if not self.versions:
            asked, known = ", ".join(versions) or "none", ", ".join(metadata.VERSIONS)
            raise InvalidInput(f"device metadata need a supported version: asked for {asked}, supported {known}")

    def write(self, claim: Claim, prepared: Sequence[Prepared]) -> list[tuple[str, ...]]:
        """Write the metadata, and return the additional CDI devices for each of `prepared`: the first one of a request
        mounts its file.

        A repeated call changes only what is different now. The generation increases with each change, and the metadata
        of an update stays if `prepared` has none for the device."""
        ids: dict[str, str] = {}
        for request, devices in _by_request(prepared).items():
            with self._turn:
                self._write(claim, request, devices)
            ids[request] = self._write_cdi(claim, request)
        return [self._taken(ids, each) for each in prepared]

    def update(self, claim: ClaimRef, request: str, prepared: Sequence[Prepared]) -> DeviceMetadata:
        """Replace the metadata of all devices of a prepared request. Raise NotFound if it is not prepared. `request`
        may be `request/subrequest`."""
        path = self.path(claim.uid, file_names.main_request(request))
        devices = tuple(_device(self._driver, each) for each in prepared)
        with self._turn:
            try:
                before = metadata.read(path)
            except NotFound as e:
                raise NotFound(f"{_text(claim)}: request {request} is not prepared, there is no {path}") from e
            after = _next(before, (MetadataRequest(request, devices),))
            self._rewrite(_text(claim), path, metadata.encode(after, self.versions))
        return after

    def update_all(self, claim: ClaimRef, prepared: Sequence[Prepared]) -> None:
        """Replace the metadata of each request that is in `prepared`."""
        for devices in _by_request(prepared).values():
            self.update(claim, devices[0].result.request, devices)

    def remove(self, uid: str) -> None:
        """Remove the metadata of a claim, if there is any."""
        folder = self._folder / file_names.check_uid(uid)
        with self._turn, explained(f"claim {uid}: device metadata cannot be removed"):
            for path in self._specs(uid):
                path.unlink(missing_ok=True)
            if folder.is_dir():
                shutil.rmtree(folder)

    def leftovers(self) -> set[str]:
        """Return the UIDs of the claims that have metadata."""
        with explained(f"device metadata in {self._folder} cannot be read"):
            found = {each.name for each in self._folder.iterdir()} if self._folder.exists() else set()
        return {name for name in found if re.fullmatch(file_names.UID, name)}

    def path(self, uid: str, request: str) -> Path:
        """Return the path of the file of a request, on the node."""
        return self._folder / file_names.check_uid(uid) / file_names.main_request(request) / "metadata.json"

    def _write(self, claim: Claim, request: str, prepared: Sequence[Prepared]) -> None:
        path = self.path(claim.uid, request)
        before, now = _earlier(path), _requests(self._driver, prepared)
        if before is None:
            name = ObjectName(claim.ref.name, claim.ref.namespace, claim.uid, 1)
            after = DeviceMetadata(name, claim.object.metadata.annotations.get(ENTRY_ANNOTATION), now)
        else:
            kept = tuple(_with_earlier(each, before) for each in now)
            after = before if kept == before.requests else _next(before, kept)
        content = metadata.encode(after, self.versions)
        if not _has(path, content):
            self._replace(_text(claim.ref), path, content)

    def _write_cdi(self, claim: Claim, request: str) -> str:
        name = f"{claim.uid}_{request}"
        mount = cdi.Mount(str(self.path(claim.uid, request)), str(self._inside(claim, request)), ("ro", "bind"))
        device = cdi.Device(name, cdi.ContainerEdits(mounts=(mount,)))
        content = codec.encode(cdi.Spec(CDI_VERSION, self._kind, (device,)))
        self._replace(_text(claim.ref), self._cdi / f"{self._driver}_metadata_{name}.json", content)
        return f"{self._kind}={name}"

    def _inside(self, claim: Claim, request: str) -> object:
        if entry := claim.object.metadata.annotations.get(ENTRY_ANNOTATION):
            return metadata.template_file(self._driver, entry, request)
        return metadata.claim_file(self._driver, claim.ref.name, request)

    def _taken(self, ids: dict[str, str], prepared: Prepared) -> tuple[str, ...]:
        found = ids.pop(prepared.result.request.partition("/")[0], None)
        return () if found is None else (found,)

    def _replace(self, claim: str, path: Path, content: bytes) -> None:
        with explained(f"{claim}: {path} cannot be written"):
            path.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            atomic_file.write(path, content, FILE_MODE)

    def _rewrite(self, claim: str, path: Path, content: bytes) -> None:
        with explained(f"{claim}: {path} cannot be written"), path.open("r+b", buffering=0) as file:
            file.write(content)
            file.truncate()
            os.fsync(file.fileno())

    def _specs(self, uid: str) -> list[Path]:
        """Unfinished ones, too."""
        if not self._cdi.is_dir():
            return []
        start = f"{self._driver}_metadata_{uid}_"
        return [path for path in self._cdi.iterdir() if path.name.removeprefix(".").startswith(start)]


def _earlier(path: Path) -> DeviceMetadata | None:
    """Return the earlier metadata; None if there is none, or if another program damaged it: it can be written again."""
    try:
        return metadata.read(path)
    except DevletError:
        return None


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _by_request(prepared: Sequence[Prepared]) -> Mapping[str, list[Prepared]]:
    """Group by main request. A result without a request cannot have metadata."""
    found: dict[str, list[Prepared]] = {}
    for each in prepared:
        if each.result.request:
            found.setdefault(file_names.main_request(each.result.request), []).append(each)
    return found


def _requests(driver: str, prepared: Sequence[Prepared]) -> tuple[MetadataRequest, ...]:
    found: dict[str, list[MetadataDevice]] = {}
    for each in prepared:
        found.setdefault(each.result.request, []).append(_device(driver, each))
    return tuple(MetadataRequest(name, tuple(devices)) for name, devices in found.items())


def _device(driver: str, prepared: Prepared) -> MetadataDevice:
    result, attributes = prepared.result, {}
    for name, value in sorted((prepared.metadata or {}).items()):
        if (made := _attribute(value)) is None:
            what = f"{value!r} is not a string, integer, bool or Version, nor a list of one of these types"
            raise InvalidInput(f"device {result.pool}/{result.device}: metadata {name}: {what}")
        attributes[name] = made
    return MetadataDevice(driver, result.pool, result.device, attributes, prepared.network)


def _attribute(value: object) -> DeviceAttribute | None:
    match value:
        case bool():
            return DeviceAttribute(bool_=value)
        case int():
            return DeviceAttribute(int_=value)
        case str():
            return DeviceAttribute(string=value)
        case Version():
            return DeviceAttribute(version=value.text)
        case list() | tuple() if len({type(each) for each in value}) == 1:
            return _attributes([_attribute(each) for each in value])
    return None


def _attributes(values: Sequence[DeviceAttribute | None]) -> DeviceAttribute | None:
    known = [each for each in values if each is not None]
    if len(known) < len(values):
        return None
    return DeviceAttribute(
        ints=tuple(each.int_ for each in known if each.int_ is not None),
        bools=tuple(each.bool_ for each in known if each.bool_ is not None),
        strings=tuple(each.string for each in known if each.string is not None),
        versions=tuple(each.version for each in known if each.version is not None),
    )


def _next(before: DeviceMetadata, requests: tuple[MetadataRequest, ...]) -> DeviceMetadata:
    name = structs.replace(before.metadata, generation=before.metadata.generation + 1)
    return structs.replace(before, metadata=name, requests=requests)


def _with_earlier(request: MetadataRequest, before: DeviceMetadata) -> MetadataRequest:
    known = {(each.pool, each.name): each for part in before.requests for each in part.devices}
    devices = tuple(
        each if each.attributes or each.network_data else known.get((each.pool, each.name), each)
        for each in request.devices
    )
    return structs.replace(request, devices=devices)


def _text(claim: ClaimRef) -> str:
    return f"claim {claim.namespace}/{claim.name}"
