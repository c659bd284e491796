"""Devices that are given back, and those who are told before anybody else can have them."""

from typing import Protocol

from msgspec import Struct

from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName

__all__ = ["Hooks", "NoHooks", "Release"]


class Release(Struct, frozen=True):
    """Devices of one resource that a pod has done with; `container` is the first of its containers that had them."""

    resource: ResourceName
    devices: tuple[DeviceID, ...]
    pod: PodUID
    container: ContainerName


class Hooks(Protocol):
    async def run(self, release: Release) -> None:
        """Returns when the devices may be given to others. A DevletError says why they may not, yet."""
        ...


class NoHooks:
    async def run(self, release: Release) -> None:
        pass
