"""From what device plugins give a container to what its runtime has to do. Pure."""

from devlet.node.devices.container_options import ContainerOptions
from devlet.runtime.containers import Config

__all__ = ["config"]


def config(options: ContainerOptions | None) -> Config | None:
    if options is None:
        return None
    return Config(options.env, options.mounts, options.devices, options.annotations, options.cdi_devices)
