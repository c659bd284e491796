"""Objects of an allocation from files, validated as an API server validates them.

Files may contain the output of `kubectl get … -o yaml`: other kinds are ignored, and pods and nodes are not validated.
"""

from collections.abc import Sequence

from devlet.alloc.admission import check_selector, selector_work
from devlet.cli import manifests
from devlet.cli.allocation_input import KINDS, Objects, stored
from devlet.cli.session import Document
from devlet.errors import BadRequest, Cause, InvalidInput, InvalidObject
from devlet.objects.kind_rules import Rules, validate_create, validate_status_update
from devlet.objects.kinds import Kind, group_of, qualified
from devlet.objects.schema.messages import message_of
from devlet.objects.schema.shape import conform

__all__ = ["read"]

_RULES = Rules(check_selector, selector_work)
_AS_THEY_ARE = ("Pod", "Node")


def read(sources: Sequence[str], namespace: str, *, recursive: bool = False, is_all: bool = True) -> Objects:
    """Read objects. `namespace` applies to objects that name none; `is_all` means that there is no other source."""
    objects = Objects()
    for number, manifest in enumerate(manifests.read(sources, recursive=recursive)):
        kind = KINDS.get(manifest.kind)
        if kind is None or group_of(manifest.api_version) != group_of(kind.storage_version):
            continue
        named = _named(manifest.document, namespace if kind.namespaced else "", number)
        objects.add(_checked(kind, named, manifest.origin), manifest.origin)
    if is_all and not objects.slices and not objects.claims and not objects.pods:
        raise InvalidInput(f"no resource slices, claims or pods found in {', '.join(sources)}")
    return objects


def _named(document: Document, namespace: str, number: int) -> Document:
    """Set the namespace and name as a server would; objects with generateName get distinct names."""
    metadata = dict(document["metadata"])
    if namespace and not metadata.get("namespace"):
        metadata["namespace"] = namespace
    if not metadata.get("name"):
        metadata["name"] = f"{metadata['generateName']}{number}"
    return {**document, "metadata": metadata}


def _checked(kind: Kind, document: Document, origin: str) -> Document:
    version = document["apiVersion"]
    if version not in kind.api_versions or (message := message_of(version, kind.kind)) is None:
        known = ", ".join(kind.api_versions)
        raise InvalidInput(f"{origin}: {kind.kind} in version {version} is not supported: use {known}")
    try:
        found = stored(conform(document, message).document, kind)
    except BadRequest as e:
        raise InvalidInput(f"{origin}: {e}") from e
    if kind.kind not in _AS_THEY_ARE and (causes := _causes(kind, found)):
        name = qualified(kind.kind, kind.storage_version)
        raise InvalidInput(f"{origin}: {InvalidObject(name, found['metadata']['name'], causes)}")
    return found


def _causes(kind: Kind, document: Document) -> list[Cause]:
    causes = validate_create(document, _RULES)
    if kind.kind == "ResourceClaim" and not causes:
        causes = validate_status_update(document, {**document, "status": {}}, _RULES)
    return causes
