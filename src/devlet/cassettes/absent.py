"""Leaves out device nodes, files and interfaces of a recording that this machine does not have.

A runtime cannot start a container with a device node that does not exist; with what remains it can.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from devlet.cassettes.cassette import Grant
from devlet.runtime.cdi.spec import ContainerEdits, DeviceNode

__all__ = ["Exists", "absent_of_edits", "absent_of_grant", "present_edits", "present_grant"]

_INTERFACES: Final = Path("/sys/class/net")

Exists = Callable[[str], bool]


def present_edits(edits: ContainerEdits, exists: Exists = os.path.lexists) -> ContainerEdits:
    return replace(
        edits,
        device_nodes=tuple(node for node in edits.device_nodes if _is_there(node, exists)),
        mounts=tuple(mount for mount in edits.mounts if not mount.host_path.startswith("/") or exists(mount.host_path)),
        hooks=tuple(hook for hook in edits.hooks if exists(hook.path)),
        net_devices=tuple(each for each in edits.net_devices if exists(str(_INTERFACES / each.host_interface_name))),
    )


def present_grant(grant: Grant, exists: Exists = os.path.lexists) -> Grant:
    return replace(
        grant,
        devices=tuple(node for node in grant.devices if exists(node.host_path)),
        mounts=tuple(mount for mount in grant.mounts if exists(mount.host_path)),
    )


def absent_of_edits(edits: ContainerEdits, exists: Exists = os.path.lexists) -> list[str]:
    """Return the names of what is left out, for messages."""
    return list(_lost(set(_of_edits(edits)) - set(_of_edits(present_edits(edits, exists)))))


def absent_of_grant(grant: Grant, exists: Exists = os.path.lexists) -> list[str]:
    return list(_lost(set(_of_grant(grant)) - set(_of_grant(present_grant(grant, exists)))))


def _is_there(node: DeviceNode, exists: Exists) -> bool:
    """Return whether a node can be used: one with a type and number is created, whether it exists or not."""
    return bool(node.type and node.major) or exists(node.host_path or node.path)


def _of_edits(edits: ContainerEdits) -> Iterator[str]:
    yield from (node.host_path or node.path for node in edits.device_nodes)
    yield from (mount.host_path for mount in edits.mounts)
    yield from (hook.path for hook in edits.hooks)
    yield from (each.host_interface_name for each in edits.net_devices)


def _of_grant(grant: Grant) -> Iterator[str]:
    yield from (node.host_path for node in grant.devices)
    yield from (mount.host_path for mount in grant.mounts)


def _lost(names: set[str]) -> Iterator[str]:
    yield from sorted(names)
