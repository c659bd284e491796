"""Devices and selectors for `devlet cel`: from files, from a running devlet or from a cluster, in any served version.

Selectors are not validated here, because that is what the command reports. A file may also contain a bare device, as
in `device: {driver: gpu.example.com, attributes: {…}}`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from devlet.alloc.cases import read_device
from devlet.alloc.device_cel import DeviceInput
from devlet.cli import manifests
from devlet.cli.allocation_input import KINDS, Objects, stored
from devlet.cli.resources import Resources
from devlet.cli.session import Document, Session
from devlet.errors import BadRequest, InvalidInput, NotFound
from devlet.objects.kinds import Kind, group_of
from devlet.objects.schema.messages import message_of
from devlet.objects.schema.shape import conform
from devlet.objects.types.slice import ResourceSlice

_GROUP: Final = "resource.k8s.io"
_PLURALS: Final = ("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates")


@dataclass(frozen=True, slots=True)
class Specimen:
    """A device and its input for CEL. A bare device has neither pool nor node."""

    driver: str
    pool: str
    device: str
    node: str
    input: DeviceInput

    @property
    def name(self) -> str:
        return "/".join(part for part in (self.driver, self.pool, self.device) if part)


@dataclass(frozen=True, slots=True)
class Selector:
    """An expression and its place. `class_name` is the class whose selectors apply first, if it is in a request."""

    origin: str
    object: str
    path: str
    expression: str
    class_name: str = ""
    request: str = ""

    @property
    def place(self) -> str:
        return f"{self.origin}: {self.object}: {self.path}"


@dataclass(slots=True)
class Input:
    objects: Objects = field(default_factory=Objects)
    origins: dict[tuple[str, str, str], str] = field(default_factory=dict)
    bare: list[Specimen] = field(default_factory=list)

    def add(self, document: Document, origin: str) -> None:
        self.objects.add(document, origin)
        metadata = document["metadata"]
        key = (document["kind"], str(metadata.get("namespace") or ""), str(metadata.get("name")))
        self.origins[key] = origin

    def specimens(self) -> list[Specimen]:
        return self.bare + [s for slice in self.objects.slices.values() for s in _specimens(slice)]

    def selectors(self) -> list[Selector]:
        """Return the selectors of classes, claims and templates."""
        return list(self._selectors())

    def _selectors(self) -> Iterator[Selector]:
        for (namespace, name), each in self.objects.classes.items():
            yield from self._of("DeviceClass", namespace, name, "spec", _expressions(each.spec.selectors))
        for (namespace, name), claim in self.objects.documents.items():
            yield from self._of_spec("ResourceClaim", namespace, name, "spec", claim.get("spec"))
        for (namespace, name), template in self.objects.templates.items():
            spec = (template.get("spec") or {}).get("spec")
            yield from self._of_spec("ResourceClaimTemplate", namespace, name, "spec.spec", spec)

    def _of_spec(self, kind: str, namespace: str, name: str, path: str, spec: Any) -> Iterator[Selector]:
        for index, request in enumerate(((spec or {}).get("devices") or {}).get("requests") or ()):
            at = f"{path}.devices.requests[{index}]"
            if request.get("exactly"):
                yield from self._of_request(kind, namespace, name, f"{at}.exactly", request["exactly"], request)
            for i, alternative in enumerate(request.get("firstAvailable") or ()):
                yield from self._of_request(
                    kind, namespace, name, f"{at}.firstAvailable[{i}]", alternative, request, alternative
                )

    def _of_request(
        self, kind: str, namespace: str, name: str, path: str, found: Document, *named: Document
    ) -> Iterator[Selector]:
        expressions = [(each.get("cel") or {}).get("expression") or "" for each in found.get("selectors") or ()]
        request = "/".join(str(each.get("name")) for each in named)
        yield from self._of(kind, namespace, name, path, expressions, str(found.get("deviceClassName") or ""), request)

    def _of(
        self,
        kind: str,
        namespace: str,
        name: str,
        path: str,
        expressions: Sequence[str],
        class_name: str = "",
        request: str = "",
    ) -> Iterator[Selector]:
        origin = self.origins[kind, namespace, name]
        what = f"{kind} {f'{namespace}/' if namespace else ''}{name}"
        for index, expression in enumerate(expressions):
            yield Selector(origin, what, f"{path}.selectors[{index}]", expression, class_name, request)


def _expressions(selectors: Sequence[Any]) -> list[str]:
    return [each.cel.expression if each.cel else "" for each in selectors]


def _specimens(slice: ResourceSlice) -> Iterator[Specimen]:
    spec = slice.spec
    for device in spec.devices:
        node = device.node_name or spec.node_name or ""
        yield Specimen(spec.driver, spec.pool.name, device.name, node, DeviceInput(spec.driver, device))


def of_files(sources: Sequence[str], namespace: str, *, recursive: bool = False) -> Input:
    """Read objects from files; `namespace` applies to objects that name none. Unrelated kinds are ignored."""
    found = Input()
    for document, where in manifests.documents(sources, recursive=recursive):
        if isinstance(document, dict) and "device" in document and "kind" not in document:
            found.bare.append(_bare(document["device"], where))
            continue
        for manifest in manifests.objects_in(document, where):
            kind = KINDS.get(manifest.kind)
            if kind is not None and group_of(manifest.api_version) == _GROUP and kind.plural in _PLURALS:
                found.add(_stored(manifest.document, kind, namespace, manifest.origin), manifest.origin)
    return found


def _bare(document: Any, where: str) -> Specimen:
    if not isinstance(document, dict):
        raise InvalidInput(f"{where}: device: expected driver, attributes and capacity")
    input = read_device(document, where)
    return Specimen(input.driver, "", str(document.get("name") or "device"), "", input)


def _stored(document: Document, kind: Kind, namespace: str, origin: str) -> Document:
    metadata = dict(document["metadata"])
    if kind.namespaced:
        metadata["namespace"] = metadata.get("namespace") or namespace
    metadata["name"] = metadata.get("name") or metadata["generateName"]
    version = document["apiVersion"]
    message = message_of(version, kind.kind) if version in kind.api_versions else None
    if message is None:
        known = ", ".join(kind.api_versions)
        raise InvalidInput(f"{origin}: {kind.kind} in version {version} is not supported: use {known}")
    try:
        return stored(conform({**document, "metadata": metadata}, message).document, kind)
    except BadRequest as e:
        raise InvalidInput(f"{origin}: {e}") from e


def of_server(session: Session) -> Input:
    """Read slices, classes, claims and templates of all namespaces."""
    resources, found = Resources(session), Input()
    for plural in _PLURALS:
        try:
            resource = resources.find(f"{plural}.{_GROUP}")
        except NotFound as e:
            raise NotFound(f"{e}; dynamic resource allocation needs the API group {_GROUP}") from e
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        for page in session.pages(resource.collection("")):
            for item in page.get("items") or ():
                found.add(stored(head | item, KINDS[resource.kind]), session.address)
    return found
