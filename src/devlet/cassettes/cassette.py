"""The content of a cassette: the drivers of one node with their pools, device plugins with their lists, CDI specs.

Devices and counters are as in the API. What a claim or a container gets with a device is included only as far as it
was recorded. Such strings may contain placeholders, which are filled when the cassette is played (`placeholders`).
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
"""The name of a pool that is named after its node."""


class _Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    pass


class Metadata(_Part, frozen=True):
    """About the cassette. `source` is what was recorded: devlet, cluster, or empty."""

    name: str = ""
    description: str = ""
    source: str = ""


# DRA drivers


class Pool(_Part, frozen=True):
    """All slices of a pool together, with devices that are on the node. `incomplete` means that slices were missing
    during the recording, so the pool may have more devices."""

    name: str
    devices: tuple[Document, ...] = ()
    shared_counters: tuple[Document, ...] = ()
    incomplete: bool = False


class DeviceEdits(_Part, frozen=True):
    """What containers got with a device. Without names, it applies to all devices without their own entry."""

    container_edits: ContainerEdits
    pool: str = ""
    device: str = ""


class DeviceHealth(_Part, frozen=True):
    """The last health that the driver reported for a device: Healthy, Unhealthy or Unknown."""

    pool: str
    device: str
    health: str = HEALTHY
    message: str = ""


class Driver(_Part, frozen=True):
    """A DRA driver. `versions` are the services that it registered with; empty if unknown."""

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
    """What Allocate returned for these devices. Without ids, it applies to all devices without their own entry."""

    ids: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = {}
    cdi_devices: tuple[str, ...] = ()


class Plugin(_Part, frozen=True):
    """A device plugin. `ids_unknown` means that only the number of devices was recorded, and their ids are invented."""

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
