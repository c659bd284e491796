"""Which resource names a device plugin may register: extended ones, `domain/name` outside of kubernetes.io."""

import json

from devlet.errors import InvalidInput
from devlet.objects.names import extended_resource_name

__all__ = ["check"]

_SHOWN = 300  # characters of a wrong name


def check(name: str) -> None:
    """`InvalidInput` if it is not one."""
    if extended_resource_name(name):
        raise InvalidInput(f"the ResourceName {json.dumps(name[:_SHOWN], ensure_ascii=False)} is invalid")
