"""DRA drivers as values: their services, the requests to them, and their answers. Pure."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName

__all__ = ["ClaimProblem", "ClaimRef", "DeviceReport", "DriverRecord", "HealthService", "Service"]


class Service(StrEnum):
    """The API version in which devlet calls a driver. Drivers advertise the first three. The others cannot be told from
    what a driver advertises, and are configured."""

    V1 = "v1"
    V1BETA1 = "v1beta1"
    V1ALPHA4 = "v1alpha4"
    V1ALPHA3 = "v1alpha3"
    V1ALPHA2 = "v1alpha2"
    V1ALPHA1 = "v1alpha1"

    @property
    def is_legacy(self) -> bool:
        """Return True if answers contain only the names of CDI devices."""
        return self in (Service.V1ALPHA3, Service.V1ALPHA2, Service.V1ALPHA1)


class HealthService(StrEnum):
    """The health service of a driver, as it is advertised and as it is named on the wire."""

    V1 = "v1.DRAResourceHealth"
    V1ALPHA1 = "v1alpha1.DRAResourceHealth"


class ClaimRef(Struct, frozen=True):
    """A claim in a request to a driver. `cdi_devices` is sent only to unprepare with v1alpha1."""

    namespace: str
    name: ClaimName
    uid: ClaimUID
    cdi_devices: tuple[str, ...] = ()


class ClaimProblem(Struct, frozen=True):
    """Why a driver failed to prepare or unprepare one claim. The other claims of the call may have succeeded."""

    message: str


class DeviceReport(Struct, frozen=True):
    """The health of a device as its driver reports it. `health` is Healthy, Unhealthy or Unknown. `timeout` is in
    seconds, and 0 if the driver specified none or an invalid one."""

    pool: str
    device: str
    health: str
    timeout: float = 0.0
    message: str = ""


class DriverRecord(Struct, frozen=True):
    """One registered instance of a driver. `since` is when it was connected, or disconnected if it is not connected.
    `message` says why it is not connected."""

    driver: DriverName
    endpoint: Path
    service: Service
    advertised: tuple[str, ...]
    health: HealthService | None
    registered: datetime
    connected: bool
    since: datetime
    preferred: bool  # the instance of its driver that is called
    message: str = ""
