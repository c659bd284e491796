"""What a container would get, as an OCI runtime spec, without a container engine.

Engines put in first what they are told directly, and then what CDI devices add; so a CDI device wins where both want
the same variable or path. Looks at the host's device nodes, and so blocks."""

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
    """`base` with all that the config adds to it. NotFound if a CDI device or a device node is missing, InvalidInput if
    an annotation names no CDI device."""
    known = devices.resolve(cdi_devices(config)).complete()
    nodes = tuple(each for node in config.devices for each in _device_nodes(node, find, look))
    started = {"ociVersion": OCI_VERSION} if base is None else base
    direct = apply(started, _direct(config, nodes), look=look)
    if config.annotations:
        direct["annotations"] = {**(direct.get("annotations") or {}), **dict(config.annotations)}
    return apply(direct, registry.edits(known), look=look)


def cdi_devices(config: Config) -> tuple[str, ...]:
    """All CDI devices that the config asks for: those of its field, then those of its annotations."""
    return tuple(dict.fromkeys((*config.cdi_devices, *names.annotated_devices(dict(config.annotations)))))


def _direct(config: Config, nodes: tuple[spec.DeviceNode, ...]) -> spec.ContainerEdits:
    return spec.ContainerEdits(
        env=tuple(f"{name}={value}" for name, value in config.env),
        device_nodes=nodes,
        mounts=tuple(map(_mount, config.mounts)),
    )


def _device_nodes(node: DeviceNode, find: Find, look: Look) -> Iterator[spec.DeviceNode]:
    """Other than in CDI specs: links are followed, a directory stands for what is in it, the owner is the host's, and
    no permissions are none."""
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
