"""What is on a cassette: the drivers of one node with their pools, device plugins with their lists, CDI specs.

Devices and counters are as in the API. What a claim or a container gets with a device is on it only as far
as it was seen. Such texts may have placeholders, which are filled when it is played (`placeholders`).
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from devlet.objects.documents import Document
from devlet.runtime.cdi.spec import ContainerEdits, Spec

__all__ = [
    "API_VERSION",
    "KIND",
    "OWN_POOL",
    "Cassette",
    "DeviceEdits",
    "DeviceHealth",
    "DeviceNode",
    "Driver",
    "Grant",
    "Metadata",
    "Mount",
    "Options",
    "Plugin",
    "PluginDevice",
    "Pool",
]

API_VERSION: Final = "devlet.dev/v1alpha1"
KIND: Final = "Cassette"
CLUSTER: Final = "cluster"  # a source
HEALTHY: Final = "Healthy"
OWN_POOL: Final = "{node}"
"""The name of a pool that is named after its node, whatever that is."""


class _Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    pass


class Metadata(_Part, frozen=True):
    """`source` is who was asked: devlet, cluster, or nobody."""

    name: str = ""
    description: str = ""
    source: str = ""


# DRA drivers


class Pool(_Part, frozen=True):
    """All slices of a pool as one. Its devices are on the node: others do not come and go with it. `incomplete`: not
    all of its slices were there, so it may have more devices."""

    name: str
    devices: tuple[Document, ...] = ()
    shared_counters: tuple[Document, ...] = ()
    incomplete: bool = False


class DeviceEdits(_Part, frozen=True):
    """What containers got with a device. Without names: with any that has no entry of its own."""

    container_edits: ContainerEdits
    pool: str = ""
    device: str = ""


class DeviceHealth(_Part, frozen=True):
    """What the driver said of a device last: Healthy, Unhealthy or Unknown."""

    pool: str
    device: str
    health: str = HEALTHY
    message: str = ""


class Driver(_Part, frozen=True):
    """`versions` are those of the services that it registered with; none if nobody knows."""

    name: str
    versions: tuple[str, ...] = ()
    pools: tuple[Pool, ...] = ()
    prepared: tuple[DeviceEdits, ...] = ()
    health: tuple[DeviceHealth, ...] = ()


# Device plugins


class PluginDevice(_Part, frozen=True):
    id: str
    health: str = HEALTHY
    numa_nodes: tuple[int, ...] = ()


class Options(_Part, frozen=True):
    pre_start_required: bool = False
    get_preferred_allocation_available: bool = False


class DeviceNode(_Part, frozen=True):
    container_path: str
    host_path: str
    permissions: str = ""


class Mount(_Part, frozen=True):
    container_path: str
    host_path: str
    read_only: bool = False


class Grant(_Part, frozen=True):
    """What Allocate answered for these devices. Without ids: for any that have no entry of their own."""

    ids: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = {}
    cdi_devices: tuple[str, ...] = ()


class Plugin(_Part, frozen=True):
    """`ids_unknown`: only the number of its devices was seen, their ids are made up."""

    resource: str
    devices: tuple[PluginDevice, ...] = ()
    ids_unknown: bool = False
    options: Options = Options()
    grants: tuple[Grant, ...] = ()


class Cassette(_Part, frozen=True):
    node: str
    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Metadata()
    drivers: tuple[Driver, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    cdi: tuple[Spec, ...] = ()
