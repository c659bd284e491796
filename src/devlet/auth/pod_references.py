"""Which other objects a pod uses, and the node that runs it must therefore be able to read."""

from collections.abc import Callable, Iterator
from typing import Any

from devlet.objects.documents import Document
from devlet.objects.subdocuments import mapping, mappings

__all__ = ["referenced"]

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def referenced(pod: Document, plural: str) -> set[str]:
    """Return the names of the objects of one resource that the pod uses, all in its namespace. Resources that pods do
    not refer to give no names."""
    find = _REFERENCES.get(plural)
    if find is None:
        return set()
    return {name for name in find(pod) if isinstance(name, str) and name}


def _claims(pod: Document) -> Iterator[Any]:
    spec, status = _part(pod, "spec"), _part(pod, "status")
    yield from (entry.get("resourceClaimName") for entry in mappings(spec, "resourceClaims"))
    yield from (entry.get("resourceClaimName") for entry in mappings(status, "resourceClaimStatuses"))
    yield _part(status, "extendedResourceClaimStatus").get("resourceClaimName")


def _service_accounts(pod: Document) -> Iterator[Any]:
    yield _part(pod, "spec").get("serviceAccountName")


def _volume_claims(pod: Document) -> Iterator[Any]:
    for volume in mappings(_part(pod, "spec"), "volumes"):
        yield _part(volume, "persistentVolumeClaim").get("claimName")


def _secrets(pod: Document) -> Iterator[Any]:
    spec = _part(pod, "spec")
    yield from (entry.get("name") for entry in mappings(spec, "imagePullSecrets"))
    yield from (_part(volume, "secret").get("secretName") for volume in mappings(spec, "volumes"))
    yield from _projected(spec, "secret")
    yield from _environment(spec, "secretRef", "secretKeyRef")


def _config_maps(pod: Document) -> Iterator[Any]:
    spec = _part(pod, "spec")
    yield from (_part(volume, "configMap").get("name") for volume in mappings(spec, "volumes"))
    yield from _projected(spec, "configMap")
    yield from _environment(spec, "configMapRef", "configMapKeyRef")


def _projected(spec: Document, key: str) -> Iterator[Any]:
    for volume in mappings(spec, "volumes"):
        for source in mappings(_part(volume, "projected"), "sources"):
            yield _part(source, key).get("name")


def _environment(spec: Document, whole: str, single: str) -> Iterator[Any]:
    for container in (one for key in _CONTAINERS for one in mappings(spec, key)):
        for source in mappings(container, "envFrom"):
            yield _part(source, whole).get("name")
        for variable in mappings(container, "env"):
            yield _part(_part(variable, "valueFrom"), single).get("name")


def _part(parent: Document, key: str) -> Document:
    return mapping(parent, key) or {}


_REFERENCES: dict[str, Callable[[Document], Iterator[Any]]] = {
    "configmaps": _config_maps,
    "persistentvolumeclaims": _volume_claims,
    "resourceclaims": _claims,
    "secrets": _secrets,
    "serviceaccounts": _service_accounts,
}
