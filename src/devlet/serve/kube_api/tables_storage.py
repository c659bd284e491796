"""The rows of volumes and of storage.k8s.io."""

from datetime import datetime

from devlet.objects.documents import Document
from devlet.objects.subdocuments import at, mappings, name, text, texts
from devlet.objects.table_cells import AGE, NAME, Cell, Column, Printer, age, wide

__all__ = [
    "CSI_DRIVERS",
    "CSI_NODES",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "STORAGE_CLASSES",
    "VOLUME_ATTACHMENTS",
]

UNSET = "<unset>"

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def _persistent_volume(document: Document, now: datetime) -> list[Cell]:
    claim = at(document, "spec", "claimRef")
    return [
        name(document),
        _storage(document, "spec"),
        _modes(document, "spec"),
        text(document, "spec", "persistentVolumeReclaimPolicy"),
        _phase(document),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else "",
        *_classes(document),
        text(document, "status", "reason"),
        age(document, now),
        _volume_mode(document),
    ]


def _persistent_volume_claim(document: Document, now: datetime) -> list[Cell]:
    bound = bool(text(document, "spec", "volumeName"))
    return [
        name(document),
        _phase(document),
        text(document, "spec", "volumeName"),
        _storage(document, "status") if bound else "",
        _modes(document, "status") if bound else "",
        *_classes(document),
        age(document, now),
        _volume_mode(document),
    ]


def _phase(document: Document) -> str:
    if at(document, "metadata", "deletionTimestamp"):
        return "Terminating"
    return text(document, "status", "phase")


def _storage(document: Document, part: str) -> str:
    value = at(document, part, "capacity", "storage")
    return "" if value is None else str(value)


def _modes(document: Document, part: str) -> str:
    wanted = set(texts(document, part, "accessModes"))
    return ",".join(short for mode, short in _MODES.items() if mode in wanted)


def _classes(document: Document) -> tuple[str, str]:
    old = text(document, "metadata", "annotations", _CLASS_ANNOTATION)
    attributes = text(document, "spec", "volumeAttributesClassName")
    return old or text(document, "spec", "storageClassName"), attributes or UNSET


def _volume_mode(document: Document) -> str:
    return text(document, "spec", "volumeMode") or UNSET


def _storage_class(document: Document, now: datetime) -> list[Cell]:
    annotations = at(document, "metadata", "annotations")
    is_default = any(at(annotations, key) == "true" for key in _DEFAULT_CLASS)
    return [
        f"{name(document)} (default)" if is_default else name(document),
        text(document, "provisioner"),
        text(document, "reclaimPolicy") or "Delete",
        text(document, "volumeBindingMode") or "Immediate",
        document.get("allowVolumeExpansion") is True,
        age(document, now),
    ]


def _csi_node(document: Document, now: datetime) -> list[Cell]:
    return [name(document), len(mappings(document, "spec", "drivers")), age(document, now)]


def _csi_driver(document: Document, now: datetime) -> list[Cell]:
    audiences = [text(request, "audience") for request in mappings(document, "spec", "tokenRequests")]
    return [
        name(document),
        at(document, "spec", "attachRequired") is not False,
        *(at(document, "spec", key) is True for key in ("podInfoOnMount", "storageCapacity")),
        ",".join(audiences) if audiences else UNSET,
        at(document, "spec", "requiresRepublish") is True,
        ",".join(texts(document, "spec", "volumeLifecycleModes")) or UNSET,
        age(document, now),
    ]


def _volume_attachment(document: Document, now: datetime) -> list[Cell]:
    return [
        name(document),
        text(document, "spec", "attacher"),
        text(document, "spec", "source", "persistentVolumeName"),
        text(document, "spec", "nodeName"),
        at(document, "status", "attached") is True,
        age(document, now),
    ]


_VOLUME_CLASSES = (Column("StorageClass"), Column("VolumeAttributesClass"))

PERSISTENT_VOLUMES = Printer(
    (
        NAME,
        Column("Capacity"),
        Column("Access Modes"),
        Column("Reclaim Policy"),
        Column("Status"),
        Column("Claim"),
        *_VOLUME_CLASSES,
        Column("Reason"),
        AGE,
        wide("VolumeMode"),
    ),
    _persistent_volume,
)
PERSISTENT_VOLUME_CLAIMS = Printer(
    (
        NAME,
        Column("Status"),
        Column("Volume"),
        Column("Capacity"),
        Column("Access Modes"),
        *_VOLUME_CLASSES,
        AGE,
        wide("VolumeMode"),
    ),
    _persistent_volume_claim,
)
STORAGE_CLASSES = Printer(
    (
        NAME,
        Column("Provisioner"),
        Column("ReclaimPolicy"),
        Column("VolumeBindingMode"),
        Column("AllowVolumeExpansion"),
        AGE,
    ),
    _storage_class,
)
CSI_NODES = Printer((NAME, Column("Drivers", "integer"), AGE), _csi_node)
CSI_DRIVERS = Printer(
    (
        NAME,
        Column("AttachRequired", "boolean"),
        Column("PodInfoOnMount", "boolean"),
        Column("StorageCapacity", "boolean"),
        Column("TokenRequests"),
        Column("RequiresRepublish", "boolean"),
        Column("Modes"),
        AGE,
    ),
    _csi_driver,
)
VOLUME_ATTACHMENTS = Printer(
    (
        NAME,
        Column("Attacher", format="name"),
        Column("PV"),
        Column("Node"),
        Column("Attached", "boolean"),
        AGE,
    ),
    _volume_attachment,
)
