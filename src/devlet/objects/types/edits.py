"""Changes to a container besides its image: device nodes and mounts, from any source."""

from msgspec import Struct

__all__ = ["DeviceNode", "Mount"]


class Mount(Struct, frozen=True, gc=False):
    container_path: str
    host_path: str
    read_only: bool = False


class DeviceNode(Struct, frozen=True, gc=False):
    """A device node. Permissions are a combination of r, w and m."""

    container_path: str
    host_path: str
    permissions: str = ""
