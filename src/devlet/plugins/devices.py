"""The answers of device plugins as values: their devices, and what a container gets with them."""

from collections.abc import Mapping

from msgspec import Struct

from devlet.objects.identifiers import DeviceID
from devlet.objects.types.edits import DeviceNode, Mount

__all__ = [
    "DOCUMENTED_ID_LENGTH",
    "HEALTHY",
    "ID_LENGTH",
    "NUMA_NODES",
    "UNHEALTHY",
    "Device",
    "Grant",
    "Options",
]

HEALTHY = "Healthy"  # any other health means unhealthy
UNHEALTHY = "Unhealthy"

DOCUMENTED_ID_LENGTH = 63  # not enforced by kubelets, so plugins exceed it
ID_LENGTH = 1_024  # bytes; a list with a longer id is refused
NUMA_NODES = 64


class Device(Struct, frozen=True, gc=False):
    """One device of a resource. `nodes` are its NUMA nodes; it has none if all nodes are equally good."""

    id: DeviceID
    health: str = HEALTHY
    nodes: tuple[int, ...] = ()

    @property
    def is_healthy(self) -> bool:
        return self.health == HEALTHY


class Options(Struct, frozen=True, gc=False):
    """The optional calls that a plugin supports."""

    pre_start: bool = False
    preferred_allocation: bool = False


class Grant(Struct, frozen=True):
    """What a container gets with its devices: the answer of a plugin to Allocate. CDI devices are names such as
    `vendor.com/class=name`."""

    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = {}
    cdi_devices: tuple[str, ...] = ()
