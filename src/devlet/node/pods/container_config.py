"""From what device plugins give a container to what its runtime has to do. Pure."""

from devlet.node.devices.container_options import ContainerOptions
from devlet.runtime.containers import Config, DeviceNode, Mount

__all__ = ["config"]


def config(options: ContainerOptions | None) -> Config | None:
    if options is None:
        return None
    return Config(
        options.env,
        tuple(Mount(each.container_path, each.host_path, each.read_only) for each in options.mounts),
        tuple(DeviceNode(each.container_path, each.host_path, each.permissions) for each in options.devices),
        options.annotations,
        options.cdi_devices,
    )
