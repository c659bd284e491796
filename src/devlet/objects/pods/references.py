"""References from a pod to other objects. A static pod, and so its mirror pod, must not have any: it has to run without
an API server."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from devlet.objects.documents import Document
from devlet.objects.subdocuments import mapping, mappings

__all__ = ["first"]

_ENV = MappingProxyType({"secretKeyRef": "secrets", "configMapKeyRef": "configmaps"})
_ENV_FROM = MappingProxyType({"secretRef": "secrets", "configMapRef": "configmaps"})
_VOLUMES = MappingProxyType(
    {
        "configMap": "configmaps (via configmap volumes)",
        "secret": "secrets (via secret volumes)",
        "csi": "csidrivers (via CSI volumes)",
        "glusterfs": "endpoints (via glusterFS volumes)",
        "persistentVolumeClaim": "persistentvolumeclaims",
        "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
        "azureFile": "secrets (via azureFile volumes)",
    }
)
_SOURCES = MappingProxyType(
    {
        "configMap": "configmaps (via projected volumes)",
        "secret": "secrets (via projected volumes)",
        "serviceAccountToken": "serviceaccounts (via projected volumes)",
        "clusterTrustBundle": "clustertrustbundles",
        "podCertificate": "podcertificates",
    }
)


def first(spec: Document) -> str:
    """Return the first referenced kind, in the words of the kubelet; empty if there is none."""
    return next(_all(spec), "")


def _all(spec: Document) -> Iterator[str]:
    if spec.get("serviceAccountName") or spec.get("serviceAccount"):
        yield "serviceaccounts"
    if spec.get("imagePullSecrets"):
        yield "secrets"
    for key in ("containers", "initContainers"):
        for container in mappings(spec, key):
            for env in mappings(container, "env"):
                yield from _keys(mapping(env, "valueFrom") or {}, _ENV)
            for source in mappings(container, "envFrom"):
                yield from _keys(source, _ENV_FROM)
    if spec.get("resourceClaims"):
        yield "resourceclaims"
    for volume in mappings(spec, "volumes"):
        yield from _keys(volume, _VOLUMES)
        for source in mappings(mapping(volume, "projected") or {}, "sources"):
            yield from _keys(source, _SOURCES)


def _keys(found: Document, kinds: Mapping[str, str]) -> Iterator[str]:
    return (kind for key, kind in kinds.items() if found.get(key) is not None)
