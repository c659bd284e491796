"""Names and UIDs as types of their own, so that a swapped argument is a type error.

A device is known by driver, pool and name together: two drivers may use the same pool name, two pools the same
device name. A device that several claims share is held in parts, each with a UUID of its own.
"""

from typing import NewType

from msgspec import Struct

__all__ = [
    "ClaimName",
    "ClaimUID",
    "ContainerName",
    "DeviceClassName",
    "DeviceID",
    "DeviceIdentity",
    "DeviceName",
    "DriverName",
    "NodeName",
    "ObjectKey",
    "PodName",
    "PodUID",
    "PoolName",
    "RequestRef",
    "ResourceName",
    "ShareID",
    "ShareIdentity",
]

PodUID = NewType("PodUID", str)
PodName = NewType("PodName", str)
ContainerName = NewType("ContainerName", str)
ClaimUID = NewType("ClaimUID", str)
ClaimName = NewType("ClaimName", str)
NodeName = NewType("NodeName", str)
DeviceClassName = NewType("DeviceClassName", str)
DriverName = NewType("DriverName", str)
PoolName = NewType("PoolName", str)
DeviceName = NewType("DeviceName", str)
ShareID = NewType("ShareID", str)
RequestRef = NewType("RequestRef", str)  # a request of a claim, or `request/subrequest`
ObjectKey = tuple[str, str]  # namespace (empty for objects without one) and name
ResourceName = NewType("ResourceName", str)  # as in limits: `cpu`, `gpu.example.com/gpu`
DeviceID = NewType("DeviceID", str)  # as a device plugin calls its devices


class DeviceIdentity(Struct, frozen=True, order=True, gc=False):
    """A device of a cluster."""

    driver: DriverName
    pool: PoolName
    device: DeviceName

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class ShareIdentity(Struct, frozen=True, order=True, gc=False):
    """One claim's part of a device that may be allocated several times."""

    device: DeviceIdentity
    share: ShareID

    def __str__(self) -> str:
        return f"{self.device}/{self.share}"
