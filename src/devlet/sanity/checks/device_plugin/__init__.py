"""Every rule that a device plugin can break."""

from itertools import chain

from devlet.sanity.check import Check
from devlet.sanity.checks.device_plugin import (
    allocation,
    calls,
    changes,
    crashes,
    kubelet_restarts,
    lists,
    options,
    registration,
    registry,
    stopping,
)
from devlet.sanity.rig_device_plugin import DevicePluginRig

__all__ = ["ALL"]

_MODULES = (registration, registry, lists, options, allocation, calls, changes, kubelet_restarts, crashes, stopping)

ALL: tuple[Check[DevicePluginRig], ...] = tuple(chain.from_iterable(module.checks for module in _MODULES))
