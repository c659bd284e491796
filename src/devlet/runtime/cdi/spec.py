"""A CDI spec as values: one file, with devices of one kind and what a container gets with each.

The types define the format: an unknown field is an error. `versions` has the version in which each field was added,
`validation` all other rules. A major number of 0 means none, because the format cannot express that otherwise.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta, Struct, field

__all__ = ["ContainerEdits", "Device", "DeviceNode", "Hook", "IntelRdt", "Mount", "NetDevice", "Spec"]

UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    pass


class DeviceNode(_Part, frozen=True):
    """`path` is in the container. An empty `host_path` means the same path."""

    path: str
    host_path: str = ""
    type: str = ""
    major: Int64 = 0
    minor: Int64 = 0
    file_mode: UInt32 | None = None
    permissions: str = ""
    uid: UInt32 | None = None
    gid: UInt32 | None = None


class Mount(_Part, frozen=True):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class Hook(_Part, frozen=True):
    """`timeout` is in seconds."""

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: Int64 | None = None


class IntelRdt(_Part, frozen=True):
    clos_id: str = field(default="", name="closID")
    l3_cache_schema: str = field(default="", name="l3CacheSchema")
    mem_bw_schema: str = ""
    schemata: tuple[str, ...] | None = None
    enable_monitoring: bool = False
    enable_cmt: bool | None = field(default=None, name="enableCMT")
    enable_mbm: bool | None = field(default=None, name="enableMBM")


class NetDevice(_Part, frozen=True):
    """`name` is in the container."""

    host_interface_name: str
    name: str


class ContainerEdits(_Part, frozen=True):
    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[UInt32, ...] = ()

    def __bool__(self) -> bool:
        return self != ContainerEdits()

    def __add__(self, later: "ContainerEdits") -> "ContainerEdits":
        return ContainerEdits(
            env=self.env + later.env,
            device_nodes=self.device_nodes + later.device_nodes,
            net_devices=self.net_devices + later.net_devices,
            hooks=self.hooks + later.hooks,
            mounts=self.mounts + later.mounts,
            intel_rdt=self.intel_rdt if later.intel_rdt is None else later.intel_rdt,
            additional_gids=self.additional_gids + later.additional_gids,
        )


class Device(_Part, frozen=True):
    name: str
    container_edits: ContainerEdits
    annotations: Mapping[str, str] = {}


class Spec(_Part, frozen=True):
    """`container_edits` are applied once to every container that gets any of the devices."""

    cdi_version: str
    kind: str
    devices: tuple[Device, ...]
    container_edits: ContainerEdits = ContainerEdits()
    annotations: Mapping[str, str] = {}

    def edits(self) -> Iterator[tuple[str, ContainerEdits]]:
        """Yield all edits with their paths in the document."""
        yield "containerEdits", self.container_edits
        for i, device in enumerate(self.devices):
            yield f"devices[{i}].containerEdits", device.container_edits
