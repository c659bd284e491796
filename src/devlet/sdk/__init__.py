"""The driver's end of the plugin sockets, for people who write drivers in Python.

`DevicePlugin` and `DraDriver` are what to inherit from; the rest are values that their methods take and give, and tools
for what drivers leave on disk. Works with a kubelet as it does with devlet.
"""

from devlet.sdk.checkpoint import Checkpoint
from devlet.sdk.claim_log import ClaimLog
from devlet.sdk.device_plugin import DevicePlugin, PluginOptions
from devlet.sdk.dra_driver import DraDriver, DraOptions
from devlet.sdk.exclusion import Exclusion
from devlet.sdk.values import (
    HEALTHY,
    UNHEALTHY,
    UNKNOWN,
    Capacity,
    Claim,
    ClaimRef,
    ContainerEdits,
    Device,
    DeviceHealth,
    DeviceNode,
    Grant,
    Hook,
    Mount,
    NetDevice,
    PluginDevice,
    Pool,
    Prepared,
    Taint,
    Version,
)

__all__ = [
    "HEALTHY",
    "UNHEALTHY",
    "UNKNOWN",
    "Capacity",
    "Checkpoint",
    "Claim",
    "ClaimLog",
    "ClaimRef",
    "ContainerEdits",
    "Device",
    "DeviceHealth",
    "DeviceNode",
    "DevicePlugin",
    "DraDriver",
    "DraOptions",
    "Exclusion",
    "Grant",
    "Hook",
    "Mount",
    "NetDevice",
    "PluginDevice",
    "PluginOptions",
    "Pool",
    "Prepared",
    "Taint",
    "Version",
]
