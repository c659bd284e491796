"""What device plugins say, as values: the devices they have and what a container gets with them."""

from collections.abc import Mapping

from msgspec import Struct

from devlet.objects.identifiers import DeviceID
from devlet.objects.types.edits import DeviceNode, Mount

__all__ = ["HEALTHY", "UNHEALTHY", "Device", "Grant", "Options"]

HEALTHY = "Healthy"  # anything else is not
UNHEALTHY = "Unhealthy"


class Device(Struct, frozen=True, gc=False):
    """One device of a resource. `nodes` are the NUMA nodes it is near to; none means that it does not matter."""

    id: DeviceID
    health: str = HEALTHY
    nodes: tuple[int, ...] = ()

    @property
    def is_healthy(self) -> bool:
        return self.health == HEALTHY


class Options(Struct, frozen=True, gc=False):
    """Which of the optional calls a plugin wants."""

    pre_start: bool = False
    preferred_allocation: bool = False


class Grant(Struct, frozen=True):
    """What a plugin has a container given along with its devices: the answer to Allocate. CDI devices are names
    such as `vendor.com/class=name`."""

    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = {}
    cdi_devices: tuple[str, ...] = ()
