"""What a container gets with its devices: the merged answers of all its plugins.

Two plugins may set the same variable or path. The first resource by name wins, so the result is deterministic; every
difference is reported as a conflict.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from devlet.objects.identifiers import ResourceName
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins.devices import Grant

__all__ = ["ContainerOptions", "merge"]

T = TypeVar("T")

Grants = Sequence[tuple[ResourceName, Grant]]
Keyed = Sequence[tuple[str, T]]


class ContainerOptions(Struct, frozen=True):
    """`conflicts` are sentences for people: what a plugin requested and the container does not get."""

    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    cdi_devices: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def merge(grants: Grants) -> ContainerOptions | None:
    """Return None if there are no grants. Empty grants give empty options."""
    if not grants:
        return None
    ordered = sorted(grants, key=lambda each: each[0])
    conflicts: list[str] = []
    return ContainerOptions(
        env=_first("env", ordered, lambda grant: _pairs(grant.env), conflicts),
        mounts=_first("mount", ordered, lambda grant: [(m.container_path, m) for m in grant.mounts], conflicts),
        devices=_first("device", ordered, lambda grant: [(d.container_path, d) for d in grant.devices], conflicts),
        annotations=_first("annotation", ordered, lambda grant: _pairs(grant.annotations), conflicts),
        cdi_devices=tuple(dict.fromkeys(name for _, grant in ordered for name in grant.cdi_devices)),
        conflicts=tuple(conflicts),
    )


def _pairs(values: Mapping[str, str]) -> Keyed[tuple[str, str]]:
    return [(key, (key, value)) for key, value in sorted(values.items())]


def _first(kind: str, grants: Grants, keyed: Callable[[Grant], Keyed[T]], conflicts: list[str]) -> tuple[T, ...]:
    """Return the first value of each key. Add the others to `conflicts`, by name only: a value may be secret."""
    kept: dict[str, tuple[ResourceName, T]] = {}
    for resource, grant in grants:
        for key, value in keyed(grant):
            owner, first = kept.setdefault(key, (resource, value))
            if value != first:
                rival = "an earlier one of its own" if owner == resource else f"that of {owner}"
                conflicts.append(f"{kind} {key} of {resource} differs from {rival}, which is kept")
    return tuple(value for _, value in kept.values())
