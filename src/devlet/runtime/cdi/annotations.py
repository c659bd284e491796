"""CDI devices in annotations of a container, the way before runtimes had a field for them.

Kubernetes 1.26 to 1.30 sent both; runtimes still read annotations, whoever set them."""

import re
from collections.abc import Mapping, Sequence

from devlet.errors import InvalidInput
from devlet.runtime.cdi import names

__all__ = ["PREFIX", "annotation", "devices"]

PREFIX = "cdi.k8s.io/"

_MAX_NAME = 63
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")


def annotation(driver: str, claim: str, devices: Sequence[str]) -> tuple[str, str]:
    """Key and value for the devices of one claim, of which `claim` is the UID."""
    name = f"{driver}_{claim}".replace("/", "_")
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{PREFIX}{name} cannot be an annotation: its name must be at most {_MAX_NAME} letters, digits, "
            "'_', '-' and '.', the first and the last a letter or digit"
        )
    return f"{PREFIX}{name}", ",".join(str(names.parse(device)) for device in devices)


def devices(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The devices that annotations ask for, ordered by key. InvalidInput if one is no name of a CDI device."""
    found: list[str] = []
    for key in sorted(key for key in annotations if key.startswith(PREFIX)):
        for name in annotations[key].split(","):
            try:
                found.append(str(names.parse(name)))
            except InvalidInput as e:
                raise InvalidInput(f"annotation {key}: {e}") from None
    return tuple(dict.fromkeys(found))
