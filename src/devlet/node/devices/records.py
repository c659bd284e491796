"""The device manager's views for people: a record per plugin instance and per device."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins.devices import Options

__all__ = ["DeviceRecord", "DeviceState", "PluginRecord", "PluginState"]


class PluginState(StrEnum):
    CONNECTED = "Connected"
    SILENT = "Silent"  # connected, but it has not listed its devices yet
    DISCONNECTED = "Disconnected"  # its stream ended; it is dialled again until the grace period is over
    STANDBY = "Standby"  # an older instance, used if the newest one disconnects
    AWAITED = "Awaited"  # known from before a restart, has not registered yet


class DeviceState(StrEnum):
    FREE = "Free"
    RESERVED = "Reserved"  # for a pod that is being admitted
    HELD = "Held"
    RELEASING = "Releasing"  # its pod has ended, and the release hooks run


class PluginRecord(Struct, frozen=True):
    """`since` is when the state began. `socket` is None for a plugin that has not registered since a restart."""

    resource: ResourceName
    socket: Path | None
    api: str
    state: PluginState
    since: datetime
    options: Options = Options()
    pid: int | None = None
    healthy: int = 0
    unhealthy: int = 0
    held: int = 0
    message: str = ""  # the last problem


class DeviceRecord(Struct, frozen=True):
    """`health` is what the plugin reports, or Unknown for a device that is allocated but no longer listed."""

    resource: ResourceName
    id: DeviceID
    health: str
    nodes: tuple[int, ...]
    state: DeviceState
    pod: PodUID | None = None
    container: ContainerName | None = None
    since: datetime | None = None  # of the allocation; None if it is older than the last restart
