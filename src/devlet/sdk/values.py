"""What driver authors write and read: devices, what a container gets with them, and claims.

Two kinds of device: a `PluginDevice` of a device plugin has an id and no properties; a `Device` of a DRA driver is
published with attributes and capacities, by which users select it. All values are plain and frozen.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from devlet.errors import InvalidInput
from devlet.objects.documents import Document
from devlet.objects.types.claim import DeviceAllocationConfiguration, DeviceResult, NetworkDeviceData, ResourceClaim
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
    """The id is opaque to everybody else and has at most 63 characters. While it is Unhealthy it is not given to new
    containers. `numa_nodes` are those that it is near to; none means that it does not matter."""

    id: str
    health: str = HEALTHY
    numa_nodes: tuple[int, ...] = ()


class Grant(Struct, frozen=True):
    """What a container gets along with devices of a device plugin. A device that is a string is a path, for reading and
    writing. `cdi_devices` are names such as `vendor.com/class=name`."""

    env: Mapping[str, str] = {}
    devices: Sequence[DeviceNode | str] = ()
    mounts: Sequence[Mount] = ()
    annotations: Mapping[str, str] = {}
    cdi_devices: Sequence[str] = ()


# DRA drivers: what is published


class Version(Struct, frozen=True, gc=False):
    """A semantic version, for an attribute that is to be compared as one."""

    text: str


Attribute = str | int | bool | Version
"""A value of an attribute. A sequence of values of one type is an attribute with several."""


class Capacity(Struct, frozen=True):
    """How much of something a device has. A `policy` says what one claim may take of a device that several may have:
    as `requestPolicy` in the API."""

    value: str | int
    policy: Document | None = None


class Taint(Struct, frozen=True, gc=False):
    """Keeps claims that do not tolerate it away (`NoSchedule`), or ends pods as well (`NoExecute`)."""

    key: str
    effect: str = "NoSchedule"
    value: str = ""


class Device(Struct, frozen=True):
    """Names of attributes and capacities without a domain belong to the driver. `consumes` are amounts of the pool's
    counters, by counter set and counter. `more` is anything else that the API knows, under its own names."""

    name: str
    attributes: Mapping[str, Attribute | Sequence[Attribute]] = {}
    capacity: Mapping[str, str | int | Capacity] = {}
    taints: Sequence[Taint] = ()
    consumes: Mapping[str, Mapping[str, str | int]] = {}
    allow_multiple_allocations: bool = False
    more: Document = {}


class Pool(Struct, frozen=True):
    """Devices that are published together, in the order in which they are preferred; spread over as many slices as it
    takes. `counters` are shared by its devices, by counter set and counter. Without a selection they are on the
    driver's node. `generation` is for those who number their pools themselves."""

    devices: Sequence[Device] = ()
    counters: Mapping[str, Mapping[str, str | int]] = {}
    node_selector: Document | None = None
    all_nodes: bool = False
    generation: int = 0


# DRA drivers: claims


class ClaimRef(Struct, frozen=True, gc=False):
    """All that is known of a claim that is to be unprepared: it may be gone already."""

    namespace: str
    name: str
    uid: str


class Claim(Struct, frozen=True):
    """An allocated claim. `results` and `configs` are those of this driver, with configs of classes before those of the
    claim: later ones win. `object` is the whole claim, `document` the same as it came from the API."""

    ref: ClaimRef
    results: tuple[DeviceResult, ...]
    configs: tuple[DeviceAllocationConfiguration, ...]
    object: ResourceClaim
    document: Document

    @property
    def uid(self) -> str:
        """Unlike its name it is never used again."""
        return self.ref.uid

    def configs_for(self, result: DeviceResult) -> list[Document]:
        """The parameters that apply to one of the results."""
        names = {result.request, result.request.partition("/")[0]}
        chosen = [each for each in self.configs if not each.requests or names & set(each.requests)]
        return [each.opaque.parameters for each in chosen if each.opaque is not None]

    def parameters_for(self, result: DeviceResult, kind: type[T] | None) -> list[T]:
        """The same as values of a type that msgspec knows; None: there may be none. InvalidInput for any other."""
        found = self.configs_for(result)
        if kind is None and found:
            raise InvalidInput(f"request {result.request} has parameters, and {result.driver} takes none: remove them")
        try:
            return [msgspec.convert(each, kind) for each in found]
        except msgspec.ValidationError as e:
            raise InvalidInput(f"parameters of request {result.request}: {e}") from e


class Prepared(Struct, frozen=True):
    """A result that is ready, and what containers get with it. The SDK writes that into a CDI file of the claim; what
    `env`, `devices` and `mounts` cannot say goes into `edits`. `cdi_devices` are names of devices in files that the
    driver wrote itself. `metadata` are attributes that the container may read, if device metadata are switched on, and
    `network` is what it may read of a network interface."""

    result: DeviceResult
    env: Mapping[str, str] = {}
    devices: Sequence[DeviceNode | str] = ()
    mounts: Sequence[Mount] = ()
    edits: ContainerEdits | None = None
    cdi_devices: Sequence[str] = ()
    metadata: Mapping[str, Attribute | Sequence[Attribute]] | None = None
    network: NetworkDeviceData | None = None


class DeviceHealth(Struct, frozen=True, gc=False):
    """`timeout` is for how many seconds it holds if nothing else is heard; 0 leaves that to the node."""

    pool: str
    device: str
    health: str = HEALTHY
    message: str = ""
    timeout: int = 0
