"""Names of CDI devices, such as `vendor.com/gpu=0` (`vendor/class=device`), alone and in annotations of a container.

The name of a DRA driver may start with a digit; a CDI vendor may not. Annotations are how devices were passed before
the runtime API had a field for them. Kubernetes 1.26 to 1.30 sent both, and runtimes still read annotations.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from devlet.errors import InvalidInput

__all__ = [
    "ANNOTATION_PREFIX",
    "QualifiedName",
    "annotated_devices",
    "annotation",
    "class_problem",
    "device_problem",
    "parse",
    "split_kind",
    "vendor_problem",
]

ANNOTATION_PREFIX = "cdi.k8s.io/"
_MAX_ANNOTATION = 63
_ANNOTATION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_WORD = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_WORD_RULE = "letters, digits, '_', '-' and '.', the first a letter, the last a letter or digit"
_DEVICE_RULE = "letters, digits, '_', '-', '.' and ':', the first and the last a letter or digit"


class QualifiedName(Struct, frozen=True, order=True):
    vendor: str
    class_name: str
    device: str

    @property
    def kind(self) -> str:
        return f"{self.vendor}/{self.class_name}"

    def __str__(self) -> str:
        return f"{self.kind}={self.device}"


def parse(name: str) -> QualifiedName:
    """Parse the qualified name of a device. Raise InvalidInput if it is not one."""
    kind, equals, device = name.partition("=")
    if not equals or name.startswith("/"):
        raise InvalidInput(f"{name!r} is not the name of a CDI device: expected vendor/class=device")
    try:
        vendor, class_name = split_kind(kind)
    except InvalidInput as e:
        raise InvalidInput(f"{name!r} is not the name of a CDI device: {e}") from None
    if problem := device_problem(device):
        raise InvalidInput(f"{name!r} is not the name of a CDI device: {problem}")
    return QualifiedName(vendor, class_name, device)


def split_kind(kind: str) -> tuple[str, str]:
    """Split a kind into vendor and class. Raise InvalidInput if either is invalid."""
    vendor, slash, class_name = kind.partition("/")
    if not slash:
        raise InvalidInput(f"{kind!r} is not of the form vendor/class")
    if problem := vendor_problem(vendor) or class_problem(class_name):
        raise InvalidInput(problem)
    return vendor, class_name


def vendor_problem(vendor: str) -> str | None:
    return None if _WORD.fullmatch(vendor) else f"vendor {vendor!r} must be {_WORD_RULE}"


def class_problem(class_name: str) -> str | None:
    return None if _WORD.fullmatch(class_name) else f"class {class_name!r} must be {_WORD_RULE}"


def device_problem(device: str) -> str | None:
    return None if _DEVICE.fullmatch(device) else f"device {device!r} must be {_DEVICE_RULE}"


def annotation(driver: str, claim: str, devices: Sequence[str]) -> tuple[str, str]:
    """Return key and value of the annotation with the devices of one claim. `claim` is its UID."""
    name = f"{driver}_{claim}".replace("/", "_")
    if len(name) > _MAX_ANNOTATION or not _ANNOTATION.fullmatch(name):
        raise InvalidInput(
            f"{ANNOTATION_PREFIX}{name} cannot be an annotation: its name must be at most {_MAX_ANNOTATION} letters,"
            " digits, '_', '-' and '.', the first and the last a letter or digit"
        )
    return f"{ANNOTATION_PREFIX}{name}", ",".join(str(parse(device)) for device in devices)


def annotated_devices(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the devices that the annotations request, sorted by key. Raise InvalidInput if one is not the name of a
    CDI device."""
    found: list[str] = []
    for key in sorted(key for key in annotations if key.startswith(ANNOTATION_PREFIX)):
        for name in annotations[key].split(","):
            try:
                found.append(str(parse(name)))
            except InvalidInput as e:
                raise InvalidInput(f"annotation {key}: {e}") from None
    return tuple(dict.fromkeys(found))
