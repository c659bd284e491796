"""The view `holders`: the pods that have devices, and what their containers get with them."""

from datetime import datetime
from typing import Annotated, Any

from devlet.objects.documents import Document
from devlet.objects.kinds import Kind
from devlet.objects.subdocuments import mappings, text, texts
from devlet.objects.table_cells import Cell
from devlet.objects.views.description import API_VERSION, NAMED, Part, Shown, Time, View, some


class HolderSpec(Part, frozen=True):
    """The pod."""

    pod_uid: Annotated[str, "Its UID."]


class HeldDevices(Part, frozen=True):
    """Devices of one resource."""

    resource: Annotated[str, "The resource name."]
    ids: Annotated[list[str], "The IDs of the devices, as their plugin reports them."]


class HeldClaim(Part, frozen=True):
    """A device of a claim."""

    name: Annotated[
        str | None, "The claim's name in the pod's spec; absent for the claim for its extended resources."
    ] = None
    claim: Annotated[str | None, "The name of the ResourceClaim."] = None
    request: Annotated[
        str | None, "The request of the claim that the container names; absent if it uses the whole claim."
    ] = None
    driver: Annotated[str | None, "The driver of the device."] = None
    pool: Annotated[str | None, "The pool of the device; absent, as the fields below, until it is prepared."] = None
    device: Annotated[str | None, "The device's name in the pool."] = None
    share_id: Annotated[str | None, "The ID of the share, if the device is shared."] = None
    cdi_devices: Annotated[list[str] | None, "The names of the CDI devices that give it to the container."] = None


class Variable(Part, frozen=True):
    """An environment variable."""

    name: Annotated[str, "Its name."]
    value: Annotated[str, "Its value."]


class Mount(Part, frozen=True):
    """A file or directory of the host."""

    container_path: Annotated[str, "Its path in the container."]
    host_path: Annotated[str, "Its path on the host."]
    read_only: Annotated[bool, "True if the container cannot write to it."]


class DeviceNode(Part, frozen=True):
    """A device node of the host."""

    container_path: Annotated[str, "Its path in the container."]
    host_path: Annotated[str, "Its path on the host."]
    permissions: Annotated[str, "A combination of r, w and m."]


class Options(Part, frozen=True):
    """What a container gets with its devices."""

    env: Annotated[list[Variable] | None, "Environment variables."] = None
    mounts: Annotated[list[Mount] | None, "Files and directories of the host."] = None
    devices: Annotated[list[DeviceNode] | None, "Device nodes of the host."] = None
    annotations: Annotated[dict[str, str] | None, "Annotations for the container runtime."] = None
    cdi_devices: Annotated[list[str] | None, "Names of CDI devices."] = None
    conflicts: Annotated[
        list[str] | None, "Settings of a plugin that were dropped because they conflict with those of another plugin."
    ] = None


class HeldContainer(Part, frozen=True):
    """A container that holds devices."""

    name: Annotated[str, "The container's name."]
    devices: Annotated[list[HeldDevices] | None, "Its devices of device plugins, by resource."] = None
    claims: Annotated[list[HeldClaim] | None, "Its devices of claims."] = None
    oci: Annotated[
        dict[str, Any] | None,
        "What the devices add to the container's OCI runtime spec, including the edits of CDI devices.",
    ] = None
    notes: Annotated[list[str] | None, "What a container engine could not do as requested, and why."] = None
    options: Annotated[Options | None, "What the container gets with its devices."] = None


class HolderStatus(Part, frozen=True):
    """The devices of the pod."""

    phase: Annotated[str | None, "The pod's phase."] = None
    since: Annotated[Time | None, "When the pod got the first of its devices; absent if that was before a restart."] = (
        None
    )
    containers: Annotated[list[HeldContainer] | None, "The containers that hold devices."] = None


def _resources(holder: Document, _: datetime) -> Cell:
    claims = [f"claim:{text(each, 'name') or text(each, 'claim')}" for each in _entries(holder, "claims")]
    return ",".join(sorted({text(each, "resource") for each in _entries(holder, "devices")} | {*claims}))


def _devices(holder: Document, _: datetime) -> Cell:
    ids = [id for each in _entries(holder, "devices") for id in texts(each, "ids")]
    prepared = [each for each in _entries(holder, "claims") if text(each, "device")]
    return some(ids + ["/".join(text(each, key) for key in ("driver", "pool", "device")) for each in prepared])


def _containers(holder: Document, _: datetime) -> Cell:
    return ",".join(text(each, "name") for each in mappings(holder, "status", "containers"))


def _entries(holder: Document, key: str) -> list[Document]:
    return [each for container in mappings(holder, "status", "containers") for each in mappings(container, key)]


HOLDERS = View(
    Kind("Holder", "holders", (API_VERSION,)),
    "A pod that holds devices on this node, of device plugins or of claims. Read-only.",
    HolderSpec,
    HolderStatus,
    (
        NAMED,
        Shown("Resource", _resources, "The resources of its devices; claim:NAME for the devices of a claim."),
        Shown("Devices", _devices, "The IDs of the devices; for a claim, DRIVER/POOL/NAME."),
        Shown("Container", _containers, "The containers that hold the devices."),
        Shown("Since", "status.since", "How long the pod has held the first of them."),
    ),
    ("spec.podUID", "status.phase"),
)
