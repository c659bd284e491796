"""The values that driver authors write and read: devices, what a container gets with a device, and claims.

There are two kinds of device. A `PluginDevice` of a device plugin has an id and no properties. A `Device` of a DRA
driver is published with attributes and capacities, by which users select it. All values are frozen.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.types.claim import DeviceAllocationConfiguration, DeviceResult, NetworkDeviceData, ResourceClaim
from devlet.objects.validation.attributes import VALUE_MAX
from devlet.runtime.cdi.spec import ContainerEdits, Hook, NetDevice

__all__ = [
    "HEALTHY",
    "UNHEALTHY",
    "UNKNOWN",
    "Capacity",
    "Claim",
    "ClaimRef",
    "ContainerEdits",
    "Device",
    "DeviceHealth",
    "DeviceNode",
    "Grant",
    "Hook",
    "Mount",
    "NetDevice",
    "PluginDevice",
    "Pool",
    "Prepared",
    "Taint",
    "Version",
    "shortened",
]

T = TypeVar("T")

HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"
UNKNOWN: Final = "Unknown"  # for DRA drivers only


class DeviceNode(Struct, frozen=True, gc=False):
    """A device file. It has the same path in the container unless `container_path` says otherwise. `permissions` are
    some of r, w and m (mknod)."""

    path: str
    container_path: str = ""
    permissions: str = "rw"


class Mount(Struct, frozen=True, gc=False):
    """A file or directory of the host. It has the same path in the container unless `container_path` says otherwise."""

    path: str
    container_path: str = ""
    read_only: bool = True


# Device plugins


class PluginDevice(Struct, frozen=True, gc=False):
    """A device of a device plugin. The id is opaque to the node and has at most 63 characters. While the device is
    Unhealthy, no new container gets it. `numa_nodes` are the NUMA nodes to which it is local; leave them out if
    locality does not matter."""

    id: str
    health: str = HEALTHY
    numa_nodes: tuple[int, ...] = ()


class Grant(Struct, frozen=True):
    """What a container gets with the devices of a device plugin. A device given as a string is a path that the
    container may read and write. `cdi_devices` are names such as `vendor.com/class=name`."""

    env: Mapping[str, str] = {}
    devices: Sequence[DeviceNode | str] = ()
    mounts: Sequence[Mount] = ()
    annotations: Mapping[str, str] = {}
    cdi_devices: Sequence[str] = ()


# DRA drivers: what is published


class Version(Struct, frozen=True, gc=False):
    """A semantic version, for an attribute that is compared as a version."""

    text: str


Attribute = str | int | bool | Version
"""The value of an attribute. An attribute with several values has a sequence of values of one type."""


class Capacity(Struct, frozen=True):
    """How much of something a device has. `policy` limits how much one claim may take of a device that several claims
    can share; it has the fields of `requestPolicy` in the API."""

    value: str | int
    policy: Document | None = None


class Taint(Struct, frozen=True, gc=False):
    """Keeps the device from claims that do not tolerate the taint (`NoSchedule`), and also evicts pods
    (`NoExecute`)."""

    key: str
    effect: str = "NoSchedule"
    value: str = ""


class Device(Struct, frozen=True):
    """A device of a DRA driver. Names of attributes and capacities without a domain belong to the driver. `consumes`
    has amounts of the pool's counters, by counter set and counter. `more` has any other fields of the API."""

    name: str
    attributes: Mapping[str, Attribute | Sequence[Attribute]] = {}
    capacity: Mapping[str, str | int | Capacity] = {}
    taints: Sequence[Taint] = ()
    consumes: Mapping[str, Mapping[str, str | int]] = {}
    allow_multiple_allocations: bool = False
    more: Document = {}


class Pool(Struct, frozen=True):
    """Devices that are published together, the preferred ones first, in as many slices as necessary. The devices share
    the `counters`, by counter set and counter. Without a node selection the devices are on the driver's node. Set
    `generation` only if the driver numbers the generations of its pools itself."""

    devices: Sequence[Device] = ()
    counters: Mapping[str, Mapping[str, str | int]] = {}
    node_selector: Document | None = None
    all_nodes: bool = False
    generation: int = 0


# DRA drivers: claims


class ClaimRef(Struct, frozen=True, gc=False):
    """What is known about a claim that is unprepared. The claim itself may have been deleted already."""

    namespace: str
    name: str
    uid: str


class Claim(Struct, frozen=True):
    """An allocated claim. It has the `results` and `configs` of this driver only. Configs of classes come before those
    of the claim, because a later config overrides an earlier one. `object` is the whole claim, and `document` is the
    same as the API returned it."""

    ref: ClaimRef
    results: tuple[DeviceResult, ...]
    configs: tuple[DeviceAllocationConfiguration, ...]
    object: ResourceClaim
    document: Document

    @property
    def uid(self) -> str:
        """The claim's UID. Unlike the name, it is never used again."""
        return self.ref.uid

    def configs_for(self, result: DeviceResult) -> list[Document]:
        """Return the parameters that apply to one of the results."""
        names = {result.request, result.request.partition("/")[0]}
        chosen = [each for each in self.configs if not each.requests or names & set(each.requests)]
        return [each.opaque.parameters for each in chosen if each.opaque is not None]

    def parameters_for(self, result: DeviceResult, kind: type[T] | None) -> list[T]:
        """Return the parameters as values of a type that msgspec can decode. With None, no parameters are allowed.

        Raise InvalidInput if the parameters do not match the type."""
        found = self.configs_for(result)
        if kind is None and found:
            raise InvalidInput(f"request {result.request} has parameters, and {result.driver} takes none: remove them")
        try:
            return [msgspec.convert(each, kind) for each in found]
        except msgspec.ValidationError as e:
            raise InvalidInput(f"parameters of request {result.request}: {e}") from e


class Prepared(Struct, frozen=True):
    """A prepared result, and what containers get with it. The SDK writes this into a CDI file of the claim.

    `edits` is for everything that `env`, `devices` and `mounts` cannot express. `cdi_devices` are names of devices in
    CDI files that the driver wrote itself. If device metadata is enabled, the container can read the attributes in
    `metadata` and the description of a network interface in `network`."""

    result: DeviceResult
    env: Mapping[str, str] = {}
    devices: Sequence[DeviceNode | str] = ()
    mounts: Sequence[Mount] = ()
    edits: ContainerEdits | None = None
    cdi_devices: Sequence[str] = ()
    metadata: Mapping[str, Attribute | Sequence[Attribute]] | None = None
    network: NetworkDeviceData | None = None


class DeviceHealth(Struct, frozen=True, gc=False):
    """The health of a device. It is valid for `timeout` seconds unless the driver reports again. With 0 the node
    decides."""

    pool: str
    device: str
    health: str = HEALTHY
    message: str = ""
    timeout: int = 0


def shortened(text: str) -> str:
    """Return as much of a string as fits into an attribute (64 bytes), cut between characters.

    A longer one would keep all devices of its pool from being published. Bytes of file names that are not UTF-8 become
    `?`."""
    return text.encode(errors="replace")[:VALUE_MAX].decode(errors="ignore")
