"""The view `drivers`: the DRA drivers of a node and how they are."""

from datetime import datetime
from typing import Annotated

from devlet.objects.documents import Document
from devlet.objects.kinds import Kind
from devlet.objects.subdocuments import at
from devlet.objects.table_cells import NONE, Cell, duration, instant
from devlet.objects.views.description import API_VERSION, NAMED, Part, Shown, Time, View


class DriverSpec(Part, frozen=True):
    """What the driver reported when it registered."""

    driver: Annotated[
        str, "The driver's name. Objects of further instances have this name with ~2, ~3 and so on appended."
    ]
    endpoint: Annotated[
        str | None, "The socket that it listens on; this and the fields below are absent if it is not registered."
    ] = None
    service: Annotated[str | None, "The API version with which the node calls it."] = None
    advertised: Annotated[list[str] | None, "The services that it advertised."] = None
    health_service: Annotated[
        str | None, "The service with which it reports the health of its devices; absent if it has none."
    ] = None
    socket: Annotated[str | None, "The socket of a driver that could not register."] = None


class DriverStatus(Part, frozen=True):
    """The state of the driver."""

    state: Annotated[
        str,
        "Connected, Disconnected, Standby if another instance is called, Refused if it could not register, or"
        " Missing if there is none.",
    ]
    since: Annotated[Time | None, "When that state began."] = None
    registered: Annotated[Time | None, "When it registered."] = None
    slices: Annotated[
        int | None, "The number of slices that it publishes for this node; absent if the API server is unavailable."
    ] = None
    devices: Annotated[int | None, "The number of devices in these slices."] = None
    claims: Annotated[int | None, "The number of claims on this node that have its devices."] = None
    pods: Annotated[int | None, "The number of pods on this node that wait for it."] = None
    wipe_at: Annotated[Time | None, "When its slices will be deleted, because it is not connected."] = None
    message: Annotated[str | None, "The problem that the driver has, if any."] = None


def _wipe(driver: Document, now: datetime) -> Cell:
    wipe = instant(at(driver, "status", "wipeAt"))
    return f"in {duration(max(0.0, (wipe - now).total_seconds()))}" if wipe else NONE


DRIVERS = View(
    Kind("Driver", "drivers", (API_VERSION,), namespaced=False),
    "A DRA driver that is registered on this node, or that is needed here but missing. Read-only.",
    DriverSpec,
    DriverStatus,
    (
        NAMED,
        Shown("State", "status.state"),
        Shown("Service", "spec.service"),
        Shown("Slices", "status.slices"),
        Shown("Devices", "status.devices"),
        Shown("Claims", "status.claims"),
        Shown("Waiting", "status.pods"),
        Shown("Wipe", _wipe, "When its slices will be deleted, because it is not connected."),
        Shown("Age", "status.since", "How long it has been in that state."),
        Shown("Endpoint", "spec.endpoint", "The socket that it listens on.", wide=True),
        Shown("Health", "spec.healthService", wide=True),
        Shown("Message", "status.message", wide=True),
    ),
    ("spec.driver", "status.state"),
)
