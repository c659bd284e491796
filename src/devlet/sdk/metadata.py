"""Device metadata: what a container can read about its devices, in one file for each request.

    metadata = read(claim_file("gpu.example.com", "my-claim", "gpu"))
    metadata.requests[0].devices[0].attributes["model"].string

A file has the same object in several versions, one after the other. A reader takes the first version that it knows and
skips the others. Any other error makes the whole file unusable. `metadata_files` writes the files.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from devlet.errors import InvalidInput, NotFound, Unavailable
from devlet.objects.documents import Document
from devlet.objects.types.claim import NetworkDeviceData
from devlet.objects.types.slice import DeviceAttribute

__all__ = [
    "KIND",
    "V1ALPHA1",
    "VERSIONS",
    "DeviceMetadata",
    "MetadataDevice",
    "MetadataRequest",
    "ObjectName",
    "claim_file",
    "decode",
    "encode",
    "merged",
    "read",
    "read_request",
    "template_file",
]

V1ALPHA1: Final = "metadata.resource.k8s.io/v1alpha1"
VERSIONS: Final = (V1ALPHA1,)
KIND: Final = "DeviceMetadata"
CONTAINER_DIRECTORY: Final = PurePosixPath("/var/run/kubernetes.io/dra-device-attributes")
SUFFIX: Final = "-metadata.json"

_MAX_BYTES = 16 << 20


class _Part(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of the metadata. Unknown keys are ignored."""


class MetadataDevice(_Part, frozen=True):
    """A device. Names of `attributes` have a domain (`resource.kubernetes.io/pcieRoot`) unless they are the
    driver's."""

    driver: str
    pool: str
    name: str
    attributes: Mapping[str, DeviceAttribute] = {}
    network_data: NetworkDeviceData | None = None


class MetadataRequest(_Part, frozen=True):
    """`name` is `request/subrequest` if an alternative was chosen."""

    name: str
    devices: tuple[MetadataDevice, ...] = ()


class ObjectName(_Part, frozen=True):
    """The name of the claim. `generation` counts the changes of the content, from 1 on."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0


class DeviceMetadata(_Part, frozen=True):
    """The metadata of a claim. `pod_claim_name` is the name of the claim in its pod if it was created from a
    template."""

    metadata: ObjectName = ObjectName()
    pod_claim_name: str | None = None
    requests: tuple[MetadataRequest, ...] = ()


def claim_file(driver: str, claim: str, request: str) -> PurePosixPath:
    """Return the path in a container, for a claim that its pod names."""
    return CONTAINER_DIRECTORY / "resourceclaims" / _part(claim) / _part(request) / f"{_part(driver)}{SUFFIX}"


def template_file(driver: str, pod_claim: str, request: str) -> PurePosixPath:
    """Return the path in a container, for a claim from a template. `pod_claim` is its name in the pod."""
    folder = CONTAINER_DIRECTORY / "resourceclaimtemplates"
    return folder / _part(pod_claim) / _part(request) / f"{_part(driver)}{SUFFIX}"


def encode(metadata: DeviceMetadata, versions: Sequence[str] = VERSIONS) -> bytes:
    """Encode the object in each of these versions."""
    body = _plain(msgspec.to_builtins(metadata))
    objects = [{"kind": KIND, "apiVersion": version, **body} for version in versions]
    return b"".join(msgspec.json.format(msgspec.json.encode(each), indent=2) + b"\n" for each in objects)


def decode(content: bytes) -> DeviceMetadata:
    """Decode metadata. Raise InvalidInput if nothing in it can be used."""
    unknown: list[str] = []
    for each in _objects(content):
        version = _version(each)
        if version in VERSIONS:
            return _decoded(each, version)
        unknown.append(version)
    if not unknown:
        raise InvalidInput("no metadata objects found in it")
    raise InvalidInput(f"no metadata of a known version (known: {', '.join(VERSIONS)}; found: {', '.join(unknown)})")


def read(path: Path | PurePosixPath) -> DeviceMetadata:
    """Read the metadata of one driver. Raise NotFound if there is no such file, and InvalidInput if it cannot be
    used."""
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError as e:
        raise NotFound(f"no metadata: {path} does not exist") from e
    except OSError as e:
        raise Unavailable(f"{path} cannot be read: {e.strerror or e}") from e
    if len(content) > _MAX_BYTES:
        raise InvalidInput(f"{path}: larger than {_MAX_BYTES} bytes")
    try:
        return decode(content)
    except InvalidInput as e:
        raise InvalidInput(f"{path}: {e}") from e


def read_request(directory: Path | PurePosixPath) -> DeviceMetadata:
    """Read the metadata of all drivers with devices of a request. The directory is the parent of `claim_file` or
    `template_file`."""
    files = sorted(Path(directory).glob(f"*{SUFFIX}"))
    if not files:
        raise NotFound(f"no metadata: there are no files in {directory}")
    return merged([read(path) for path in files])


def merged(parts: Iterable[DeviceMetadata]) -> DeviceMetadata:
    """Merge metadata: devices of the same request together, in their order."""
    total = DeviceMetadata()
    requests: dict[str, MetadataRequest] = {}
    for part in parts:
        total = structs.replace(total, pod_claim_name=total.pod_claim_name or part.pod_claim_name)
        for request in part.requests:
            before = requests.get(request.name, MetadataRequest(request.name))
            requests[request.name] = structs.replace(before, devices=before.devices + request.devices)
    return structs.replace(total, requests=tuple(requests.values()))


def _part(name: str) -> str:
    if not name or "/" in name or name in (".", ".."):
        raise InvalidInput(f"{name!r} is not a name: it would be another path")
    return name


def _objects(content: bytes) -> Iterator[Document]:
    """Yield the objects one after the other. Those after the chosen one may be invalid."""
    try:
        text = content.decode()
    except UnicodeDecodeError as e:
        raise InvalidInput(f"not JSON: {e}") from e
    decoder = json.JSONDecoder()
    while text := text.lstrip(" \t\r\n"):
        try:
            value, end = decoder.raw_decode(text)
        except (json.JSONDecodeError, RecursionError) as e:
            raise InvalidInput(f"not JSON: {e}") from e
        if not isinstance(value, dict):
            raise InvalidInput("not a metadata object: expected {…}")
        yield value
        text = text[end:]


def _version(document: Document) -> str:
    version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(version, str) or not version:
        raise InvalidInput("a metadata object without apiVersion")
    if not isinstance(kind, str) or not kind:
        raise InvalidInput(f"a metadata object of {version} without kind")
    if version in VERSIONS and kind != KIND:
        raise InvalidInput(f"an object of {version} that is a {kind}, expected {KIND}")
    return version


def _decoded(document: Document, version: str) -> DeviceMetadata:
    try:
        return msgspec.convert(_plain(document), DeviceMetadata)
    except msgspec.ValidationError as e:
        raise InvalidInput(f"{version}: {e}") from e


def _plain(value: Any) -> Any:
    """Remove null and empty values, as the format requires."""
    if isinstance(value, dict):
        empty: tuple[Any, ...] = (None, [], (), "") if "interfaceName" in value else (None, [], ())
        return {key: _plain(each) for key, each in value.items() if each not in empty}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
