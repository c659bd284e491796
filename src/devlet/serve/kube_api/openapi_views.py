"""Schemas of the node's views, for `kubectl explain`."""

from typing import Any

from devlet.objects.documents import Document
from devlet.objects.kinds import group_of
from devlet.serve.kube_api.openapi_custom import CustomSchema
from devlet.serve.kube_api.paths import VIEWS

__all__ = ["with_views"]


def with_views(custom: CustomSchema) -> CustomSchema:
    """The schemas of the views, and of what `custom` knows."""
    groups = {group_of(version) for kind in VIEWS for version in kind.api_versions}

    def schema(api_version: str, kind: str) -> Document | None:
        return _SCHEMAS.get(kind) if group_of(api_version) in groups else custom(api_version, kind)

    return schema


def _object(description: str, **properties: Any) -> Document:
    return {"type": "object", "description": description, "properties": properties}


def _text(description: str) -> Document:
    return {"type": "string", "description": description}


def _time(description: str) -> Document:
    return {**_text(description), "format": "date-time"}


def _number(description: str) -> Document:
    return {"type": "integer", "format": "int64", "description": description}


def _flag(description: str) -> Document:
    return {"type": "boolean", "description": description}


def _list(description: str, items: Document | None = None) -> Document:
    return {"type": "array", "description": description, "items": items or {"type": "string"}}


_DEVICE = _object(
    "A device of a device plugin on this node, or one of a DRA driver that several claims want. Read only.",
    spec=_object(
        "Which device it is.",
        resource=_text("The resource name under which containers ask for it; absent if it is of a DRA driver."),
        driver=_text("The DRA driver that it is of."),
        pool=_text("The pool of the driver that it is in."),
        id=_text("What its plugin or driver calls it."),
        numaNodes=_list("The NUMA nodes it is near to.", {"type": "integer", "format": "int64"}),
    ),
    status=_object(
        "How it is.",
        health=_text("What its plugin says; Unknown for a device that is held but no longer listed."),
        state=_text(
            "Free, Reserved for a pod that is being admitted, Held, Releasing, or Contested by several claims."
        ),
        holder=_object(
            "Who has it.",
            namespace=_text("The pod's namespace; absent if the pod is gone."),
            pod=_text("The pod's name; absent if the pod is gone."),
            podUID=_text("The pod's UID."),
            container=_text("The container that has it."),
        ),
        claims=_list("The claims that it is prepared for, as NAMESPACE/NAME."),
        waiting=_list("The claims that wait until it is unprepared, as NAMESPACE/NAME."),
        since=_time(
            "When the holder got it, or when the first claim began to wait; absent if that was before a restart."
        ),
    ),
)
_PLUGIN = _object(
    "A device plugin that registered on this node. Read only.",
    spec=_object(
        "What it said of itself.",
        resource=_text("The resource that it offers."),
        socket=_text("Where it listens; absent while it is awaited after a restart."),
        type=_text("The type of a plugin that could not register, as it calls itself."),
        api=_text("The version of the device plugin API it speaks."),
        options=_object(
            "Which of the optional calls it wants.",
            preStartRequired=_flag("It is called before a container starts."),
            getPreferredAllocationAvailable=_flag("It is asked which devices go well together."),
        ),
    ),
    status=_object(
        "How it is.",
        state=_text("Connected, Silent, Disconnected, Standby, Awaited, or Refused if it could not register."),
        since=_time("When that state began."),
        healthy=_number("How many of its devices are healthy."),
        unhealthy=_number("How many are not."),
        held=_number("How many devices of the resource are held by pods."),
        pid=_number("The process that listens on the socket."),
        message=_text("What went wrong last."),
    ),
)
_OPTIONS = _object(
    "What the container gets with its devices.",
    env=_list("Environment variables.", _object("", name=_text("Its name."), value=_text("Its value."))),
    mounts=_list(
        "Files and directories of the host.",
        _object(
            "",
            containerPath=_text("Where it is seen in the container."),
            hostPath=_text("Where it is on the host."),
            readOnly=_flag("It cannot be written."),
        ),
    ),
    devices=_list(
        "Device nodes of the host.",
        _object(
            "",
            containerPath=_text("Where it is seen in the container."),
            hostPath=_text("Where it is on the host."),
            permissions=_text("Some of r, w and m."),
        ),
    ),
    annotations={
        "type": "object",
        "description": "Annotations for the container runtime.",
        "additionalProperties": {"type": "string"},
    },
    cdiDevices=_list("Names of CDI devices."),
    conflicts=_list("What a plugin asked for and did not get, because another one had asked first."),
)
_OCI = {
    "type": "object",
    "description": "What devices add to the container's OCI runtime spec, with the edits of CDI devices.",
    "x-kubernetes-preserve-unknown-fields": True,
}
_CLAIM = _object(
    "",
    name=_text("What the pod calls the claim; absent for the claim behind its extended resources."),
    claim=_text("The claim's own name."),
    request=_text("The request of the claim that the container names; absent if it names none and so has all."),
    driver=_text("The driver of the device."),
    pool=_text("The pool it is in; absent if it has not been prepared yet, as all below."),
    device=_text("Its name there."),
    shareID=_text("Which share of it, if it is shared."),
    cdiDevices=_list("The CDI devices by which the container gets it."),
)
_HOLDER = _object(
    "A pod that has devices on this node, of device plugins or of claims. Read only.",
    spec=_object("Which pod it is.", podUID=_text("Its UID.")),
    status=_object(
        "What it has.",
        phase=_text("The pod's phase."),
        since=_time("When it got the first of its devices; absent if that was before a restart."),
        containers=_list(
            "Those of its containers that have devices.",
            _object(
                "",
                name=_text("The container's name."),
                devices=_list(
                    "Its devices by resource.",
                    _object("", resource=_text("The resource name."), ids=_list("What their plugin calls them.")),
                ),
                claims=_list("Its devices of claims.", _CLAIM),
                options=_OPTIONS,
                oci=_OCI,
                notes=_list("What a container engine could not do as it is told, and why."),
            ),
        ),
    ),
)
_DRIVER = _object(
    "A DRA driver on this node, or one that is missing here. Read only.",
    spec=_object(
        "What it said of itself.",
        driver=_text("Its name; further instances of the same driver have ~2 and so on after it in their own."),
        endpoint=_text("Where it listens; absent if it is not registered, as all below."),
        socket=_text("The socket of a driver that could not register."),
        service=_text("The version of the API by which it is called."),
        advertised=_list("The services that it has."),
        healthService=_text("The service by which it tells of the health of its devices; absent if it does not."),
    ),
    status=_object(
        "How it is.",
        state=_text(
            "Connected, Disconnected, Standby if another instance is called, Refused if it could not register, or"
            " Missing if there is none."
        ),
        since=_time("When that state began."),
        registered=_time("When it registered."),
        slices=_number("How many slices it publishes for this node; absent if the cluster cannot be asked."),
        devices=_number("How many devices these have."),
        claims=_number("How many claims on this node are its own."),
        pods=_number("How many pods on this node wait for it."),
        wipeAt=_time("When its slices will be deleted because it is away."),
        message=_text("What is wrong with it."),
    ),
)
_PREPARED_DEVICE = _object(
    "",
    pool=_text("The pool it is in."),
    device=_text("Its name there."),
    shareID=_text("Which share of it, if it is shared."),
    requests=_list("For which requests of the claim it is; absent if for all."),
    cdiDevices=_list("The CDI devices by which a container gets it."),
)
_PREPARED_CLAIM = _object(
    "A claim that is prepared on this node, or that a pod here waits for. Deleting it releases it.",
    spec=_object("Which claim it is.", uid=_text("The claim's UID; absent if it was not begun.")),
    status=_object(
        "How it is.",
        state=_text("Preparing, Prepared, Failed, Unpreparing, or Waiting if it was not begun."),
        since=_time("When that state began; absent if that was before a restart."),
        message=_text("What went wrong last, or what is awaited."),
        drivers=_list(
            "The drivers whose devices it has.",
            _object(
                "",
                driver=_text("The driver's name."),
                prepared=_flag("It has prepared its part."),
                devices=_list("What it prepared.", _PREPARED_DEVICE),
            ),
        ),
        pods=_list(
            "The pods that use it.",
            _object("", name=_text("Its name; absent if it is gone."), uid=_text("Its UID.")),
        ),
        waiting=_list(
            "The pods that cannot start without it.",
            _object(
                "",
                pod=_text("Its name; absent if it is gone."),
                uid=_text("Its UID."),
                since=_time("Since when it waits."),
                message=_text("What for."),
            ),
        ),
    ),
)
_SCHEMAS = {
    "Device": _DEVICE,
    "Plugin": _PLUGIN,
    "Holder": _HOLDER,
    "Driver": _DRIVER,
    "PreparedClaim": _PREPARED_CLAIM,
}
