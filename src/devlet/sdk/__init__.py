"""Write device plugins and DRA drivers in Python. They work with a kubelet as well as with devlet.

Inherit from `DevicePlugin` or `DraDriver`. The other names are the values that their methods take and return, and tools
for the files that drivers keep.
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
