"""Build the OCI runtime spec of a container without a container engine.

Engines first add what the request contains, and then the edits of CDI devices. So a CDI device takes precedence if both
set the same variable or path. This reads the host's device nodes, so it blocks.
"""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from devlet.objects.types.edits import DeviceNode, Mount
from devlet.runtime.cdi import names, registry, spec
from devlet.runtime.cdi.apply import Document, apply
from devlet.runtime.cdi.host_nodes import Find, Look, find, look
from devlet.runtime.cdi.registry import Registry
from devlet.runtime.cdi.validation import NO_PERMISSIONS
from devlet.runtime.containers import Config

__all__ = ["OCI_VERSION", "cdi_devices", "describe"]

OCI_VERSION = "1.3.0"  # the first with network devices


def describe(
    config: Config,
    devices: Registry,
    base: Mapping[str, Any] | None = None,
    *,
    look: Look = look,
    find: Find = find,
) -> Document:
    """Return `base` with everything that the config adds. Raise NotFound if a CDI device or a device node is missing,
    InvalidInput if an annotation does not name a CDI device."""
    known = devices.resolve(cdi_devices(config)).complete()
    nodes = tuple(each for node in config.devices for each in _device_nodes(node, find, look))
    started = {"ociVersion": OCI_VERSION} if base is None else base
    direct = apply(started, _direct(config, nodes), look=look)
    if config.annotations:
        direct["annotations"] = {**(direct.get("annotations") or {}), **dict(config.annotations)}
    return apply(direct, registry.edits(known), look=look)


def cdi_devices(config: Config) -> tuple[str, ...]:
    """Return all CDI devices that the config requests: first those of its field, then those of its annotations."""
    return tuple(dict.fromkeys((*config.cdi_devices, *names.annotated_devices(dict(config.annotations)))))


def _direct(config: Config, nodes: tuple[spec.DeviceNode, ...]) -> spec.ContainerEdits:
    return spec.ContainerEdits(
        env=tuple(f"{name}={value}" for name, value in config.env),
        device_nodes=nodes,
        mounts=tuple(map(_mount, config.mounts)),
    )


def _device_nodes(node: DeviceNode, find: Find, look: Look) -> Iterator[spec.DeviceNode]:
    """Yield the nodes. Unlike in CDI specs, links are followed, a directory stands for the nodes below it, the owner is
    taken from the host, and empty permissions mean none."""
    for name, path in find(node.host_path):
        found = look(path)
        yield spec.DeviceNode(
            posixpath.join(node.container_path or node.host_path, name) if name else node.container_path or path,
            host_path=path,
            type=found.type,
            major=found.major,
            minor=found.minor,
            file_mode=found.mode,
            permissions=node.permissions or NO_PERMISSIONS,
            uid=found.uid,
            gid=found.gid,
        )


def _mount(mount: Mount) -> spec.Mount:
    options = ("rbind", "rprivate", "ro" if mount.read_only else "rw")
    return spec.Mount(mount.host_path, mount.container_path, options, type="bind")
