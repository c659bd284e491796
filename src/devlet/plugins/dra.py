"""DRA drivers as values: which services they have, what they are asked, what they answer. Pure."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName

__all__ = ["ClaimProblem", "ClaimRef", "DeviceReport", "DriverRecord", "HealthService", "Service"]


class Service(StrEnum):
    """How devlet calls a driver, by the API version. The first three are also what a driver advertises; the others
    cannot be told apart by that and come from the configuration."""

    V1 = "v1"
    V1BETA1 = "v1beta1"
    V1ALPHA4 = "v1alpha4"
    V1ALPHA3 = "v1alpha3"
    V1ALPHA2 = "v1alpha2"
    V1ALPHA1 = "v1alpha1"

    @property
    def is_legacy(self) -> bool:
        """It answers with names of CDI devices alone."""
        return self in (Service.V1ALPHA3, Service.V1ALPHA2, Service.V1ALPHA1)


class HealthService(StrEnum):
    """As it is advertised, and as it is called on the wire."""

    V1 = "v1.DRAResourceHealth"
    V1ALPHA1 = "v1alpha1.DRAResourceHealth"


class ClaimRef(Struct, frozen=True):
    """A claim as drivers are told of it. `cdi_devices` is what v1alpha1 wants to hear again when it unprepares."""

    namespace: str
    name: ClaimName
    uid: ClaimUID
    cdi_devices: tuple[str, ...] = ()


class ClaimProblem(Struct, frozen=True):
    """Why a driver did not do for one claim what it did, maybe, for others."""

    message: str


class DeviceReport(Struct, frozen=True):
    """How a device is, as its driver says. `health` is Healthy, Unhealthy or Unknown; `timeout` is in seconds and 0 if
    the driver gave none, or none that makes sense."""

    pool: str
    device: str
    health: str
    timeout: float = 0.0
    message: str = ""


class DriverRecord(Struct, frozen=True):
    """One registered instance of a driver. `since` is when it was connected, or lost if it is not. `message` says why
    it is not connected."""

    driver: DriverName
    endpoint: Path
    service: Service
    advertised: tuple[str, ...]
    health: HealthService | None
    registered: datetime
    connected: bool
    since: datetime
    preferred: bool  # the one of its driver that is called
    message: str = ""
