"""From what a container gets of device plugins and of claims to what its runtime has to do. Pure."""

from collections.abc import Sequence

from devlet.node.devices.container_options import ContainerOptions
from devlet.runtime.containers import Config

__all__ = ["config"]


def config(options: ContainerOptions | None, claimed: Sequence[str] = ()) -> Config | None:
    """`claimed` are the CDI devices of its claims, which come before those of plugins. None if there is nothing."""
    if options is None:
        return Config(cdi_devices=tuple(dict.fromkeys(claimed))) if claimed else None
    devices = tuple(dict.fromkeys((*claimed, *options.cdi_devices)))
    return Config(options.env, options.mounts, options.devices, options.annotations, devices)
