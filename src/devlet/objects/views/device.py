"""The view `devices`: who has which device."""

from datetime import datetime
from typing import Annotated

from devlet.objects.documents import Document
from devlet.objects.kinds import Kind
from devlet.objects.subdocuments import at, text, texts
from devlet.objects.table_cells import NONE, Cell, since
from devlet.objects.views.description import API_VERSION, Part, Shown, Time, View


class DeviceSpec(Part, frozen=True):
    """The device."""

    resource: Annotated[str | None, "The resource name with which containers request it; absent for DRA."] = None
    driver: Annotated[str | None, "The DRA driver that publishes it."] = None
    pool: Annotated[str | None, "The driver's pool that contains it."] = None
    id: Annotated[str | None, "The device's ID, as its plugin or driver reports it."] = None
    numa_nodes: Annotated[list[int] | None, "The NUMA nodes that it is local to."] = None


class HeldBy(Part, frozen=True):
    """The container that holds the device."""

    namespace: Annotated[str | None, "The pod's namespace; absent if the pod is gone."] = None
    pod: Annotated[str | None, "The pod's name; absent if the pod is gone."] = None
    pod_uid: Annotated[str | None, "The pod's UID."] = None
    container: Annotated[str | None, "The container that holds it."] = None


class DeviceStatus(Part, frozen=True):
    """The state of the device."""

    health: Annotated[
        str | None, "The health that its plugin reports; Unknown for a device that is held but no longer listed."
    ] = None
    state: Annotated[
        str | None, "Free, Reserved for a pod that is being admitted, Held, Releasing, or Contested by several claims."
    ] = None
    holder: Annotated[HeldBy | None, "The container that holds it."] = None
    since: Annotated[
        Time | None,
        "When the holder got it, or when the first claim began to wait; absent if that was before a restart.",
    ] = None
    claims: Annotated[list[str] | None, "The claims for which it is prepared, as NAMESPACE/NAME."] = None
    waiting: Annotated[list[str] | None, "The claims that wait for it to be unprepared, as NAMESPACE/NAME."] = None


def _resource(device: Document, _: datetime) -> Cell:
    return text(device, "spec", "resource") or "/".join(text(device, "spec", key) for key in ("driver", "pool"))


def _holder(device: Document, _: datetime) -> Cell:
    claims, waiting = (",".join(texts(device, "status", key)) for key in ("claims", "waiting"))
    holder = at(device, "status", "holder")
    if not isinstance(holder, dict):
        return f"claim {claims} (wanted by {waiting})" if claims else NONE
    # A pod that is gone has only its UID.
    pod = [text(holder, "namespace"), text(holder, "pod")] if text(holder, "pod") else [text(holder, "podUID")]
    return "/".join(filter(None, [*pod, text(holder, "container")]))


def _since(device: Document, now: datetime) -> Cell:
    held = isinstance(at(device, "status", "holder"), dict) or texts(device, "status", "claims")
    return since(at(device, "status", "since"), now) if held else NONE


DEVICES = View(
    Kind("Device", "devices", (API_VERSION,), namespaced=False),
    "A device of a device plugin on this node, or a device of a DRA driver that several claims want. Read-only.",
    DeviceSpec,
    DeviceStatus,
    (
        Shown("Resource", _resource, "The resource name with which containers request it, or its DRA driver and pool."),
        Shown("ID", "spec.id", format="name"),
        Shown("Health", "status.health"),
        Shown("NUMA", "spec.numaNodes"),
        Shown("State", "status.state"),
        Shown("Holder", _holder, "The namespace, pod and container that hold it, or the claims."),
        Shown("Since", _since, "How long the holder has had it."),
    ),
    ("spec.resource", "spec.id", "status.state", "status.health"),
)
