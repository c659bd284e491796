"""View of a device class, and of selectors and configuration, which claims also have.

The selectors of a class and of a request must all match. Configuration is passed to the driver and does not affect the
choice of devices.
"""

from typing import Any

from devlet.objects.identifiers import DeviceClassName, DriverName
from devlet.objects.types.meta import ObjectMeta, View

__all__ = [
    "CELDeviceSelector",
    "DeviceClass",
    "DeviceClassSpec",
    "DeviceConfiguration",
    "DeviceSelector",
    "OpaqueConfiguration",
]


class CELDeviceSelector(View, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(View, frozen=True, kw_only=True):
    cel: CELDeviceSelector | None = None


class OpaqueConfiguration(View, frozen=True, kw_only=True):
    driver: DriverName = DriverName("")
    parameters: Any = None


class DeviceConfiguration(View, frozen=True, kw_only=True):
    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(View, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()

    @property
    def name(self) -> DeviceClassName:
        return DeviceClassName(self.metadata.name)
