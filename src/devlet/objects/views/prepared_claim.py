"""The view `preparedclaims`: the claims that are prepared on a node, and those that its pods wait for."""

from datetime import datetime
from typing import Annotated

from devlet.objects.documents import Document
from devlet.objects.kinds import Kind
from devlet.objects.subdocuments import mappings, text
from devlet.objects.table_cells import Cell, none_if_empty
from devlet.objects.views.description import API_VERSION, NAMED, Part, Shown, Time, View, some


class PreparedClaimSpec(Part, frozen=True):
    """The claim."""

    uid: Annotated[str | None, "The claim's UID; absent if its preparation has not begun."] = None


class ClaimDevice(Part, frozen=True):
    """A prepared device."""

    pool: Annotated[str | None, "The pool that contains it."] = None
    device: Annotated[str | None, "The device's name in the pool."] = None
    share_id: Annotated[str | None, "The ID of the share, if the device is shared."] = None
    requests: Annotated[
        list[str] | None, "The requests of the claim that it satisfies; absent if it satisfies all."
    ] = None
    cdi_devices: Annotated[list[str] | None, "The names of the CDI devices that give it to a container."] = None


class ClaimDriver(Part, frozen=True):
    """A driver's part of the claim."""

    driver: Annotated[str, "The driver's name."]
    prepared: Annotated[bool, "True if the driver has prepared its part of the claim."]
    devices: Annotated[list[ClaimDevice] | None, "The devices that it prepared."] = None


class ClaimPod(Part, frozen=True):
    """A pod that uses the claim."""

    name: Annotated[str | None, "The pod's name; absent if the pod is gone."] = None
    uid: Annotated[str | None, "Its UID."] = None


class WaitingPod(Part, frozen=True):
    """A pod that cannot start without the claim."""

    pod: Annotated[str | None, "The pod's name; absent if the pod is gone."] = None
    uid: Annotated[str | None, "Its UID."] = None
    since: Annotated[Time | None, "When the pod began to wait."] = None
    message: Annotated[str | None, "What the pod waits for."] = None


class PreparedClaimStatus(Part, frozen=True):
    """The state of the claim on this node."""

    state: Annotated[str, "Preparing, Prepared, Failed, Unpreparing, or Waiting if its preparation has not begun."]
    since: Annotated[Time | None, "When that state began; absent if that was before a restart."] = None
    message: Annotated[str | None, "The last error, or what the claim waits for."] = None
    drivers: Annotated[list[ClaimDriver] | None, "The drivers whose devices are allocated to it."] = None
    pods: Annotated[list[ClaimPod] | None, "The pods on this node that use it."] = None
    waiting: Annotated[list[WaitingPod] | None, "The pods on this node that cannot start without it."] = None


def _drivers(claim: Document, _: datetime) -> Cell:
    return none_if_empty(",".join(text(part, "driver") for part in mappings(claim, "status", "drivers")))


def _devices(claim: Document, _: datetime) -> Cell:
    parts = mappings(claim, "status", "drivers")
    return none_if_empty(some([text(device, "device") for part in parts for device in mappings(part, "devices")]))


def _pods(claim: Document, _: datetime) -> Cell:
    return none_if_empty(some([text(p, "name") or text(p, "uid") for p in mappings(claim, "status", "pods")]))


def _waiting(claim: Document, _: datetime) -> Cell:
    return none_if_empty(some([text(p, "pod") or text(p, "uid") for p in mappings(claim, "status", "waiting")]))


PREPARED_CLAIMS = View(
    Kind("PreparedClaim", "preparedclaims", (API_VERSION,), short_names=("pclaims",)),
    "A claim that is prepared on this node, or that a pod on this node waits for. Deleting it releases the claim.",
    PreparedClaimSpec,
    PreparedClaimStatus,
    (
        NAMED,
        Shown("State", "status.state"),
        Shown("Drivers", _drivers, "The drivers whose devices are allocated to it."),
        Shown("Devices", _devices, "The devices that are prepared."),
        Shown("Pods", _pods, "The pods on this node that use it."),
        Shown("Waiting", _waiting, "The pods on this node that cannot start without it."),
        Shown("Since", "status.since", "How long it has been in that state."),
        Shown("UID", "spec.uid", wide=True),
        Shown("Message", "status.message", wide=True),
    ),
    ("spec.uid", "status.state"),
    ("delete", "get", "list"),
)
