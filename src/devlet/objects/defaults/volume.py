"""Defaults of a pod's volumes.

A volume without a source is an empty directory. All functions modify the document that they are given.
"""

from devlet.objects.defaults.image import pull_policy
from devlet.objects.documents import Document
from devlet.objects.subdocuments import ensure, fill, fill_empty, mapping, mappings

__all__ = ["default_field_selectors", "default_volume"]

FILE_MODE = 0o644
TOKEN_SECONDS = 3600

# By source: fields for which empty means "not set", and fields that are absent when not set.
_WHEN_EMPTY: dict[str, dict[str, str]] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_WHEN_ABSENT: dict[str, dict[str, str | int | bool]] = {
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "configMap": {"defaultMode": FILE_MODE},
    "downwardAPI": {"defaultMode": FILE_MODE},
    "hostPath": {"type": ""},
    "projected": {"defaultMode": FILE_MODE},
    "secret": {"defaultMode": FILE_MODE},
}


def default_volume(volume: Document) -> None:
    if all(source is None for key, source in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for source, found in volume.items():
        if not isinstance(found, dict):
            continue
        for key, text in _WHEN_EMPTY.get(source, {}).items():
            fill_empty(found, key, text)
        for key, value in _WHEN_ABSENT.get(source, {}).items():
            fill(found, key, value)
    _default_nested(volume)


def _default_nested(volume: Document) -> None:
    default_field_selectors(mapping(volume, "downwardAPI") or {}, "items")
    for source in mappings(mapping(volume, "projected") or {}, "sources"):
        default_field_selectors(mapping(source, "downwardAPI") or {}, "items")
        if (token := mapping(source, "serviceAccountToken")) is not None:
            fill(token, "expirationSeconds", TOKEN_SECONDS)
    if (template := mapping(mapping(volume, "ephemeral") or {}, "volumeClaimTemplate")) is not None:
        fill(ensure(template, "spec"), "volumeMode", "Filesystem")
    if (image := mapping(volume, "image")) is not None:
        fill_empty(image, "pullPolicy", pull_policy(image.get("reference")))


def default_field_selectors(parent: Document, key: str) -> None:
    """Set defaults of the selectors `fieldRef` and `resourceFieldRef` in each object of a list."""
    for item in mappings(parent, key):
        if (field := mapping(item, "fieldRef")) is not None:
            fill_empty(field, "apiVersion", "v1")
        if (resource := mapping(item, "resourceFieldRef")) is not None:
            fill(resource, "divisor", "0")
