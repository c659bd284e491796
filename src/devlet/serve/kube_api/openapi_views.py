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
    "A device of a device plugin on this node, and who has it. Read only.",
    spec=_object(
        "Which device it is.",
        resource=_text("The resource name under which containers ask for it."),
        id=_text("What its plugin calls it."),
        numaNodes=_list("The NUMA nodes it is near to.", {"type": "integer", "format": "int64"}),
    ),
    status=_object(
        "How it is.",
        health=_text("What its plugin says; Unknown for a device that is held but no longer listed."),
        state=_text("Free, Reserved for a pod that is being admitted, Held, or Releasing."),
        holder=_object(
            "Who has it.",
            namespace=_text("The pod's namespace; absent if the pod is gone."),
            pod=_text("The pod's name; absent if the pod is gone."),
            podUID=_text("The pod's UID."),
            container=_text("The container that has it."),
        ),
        since=_time("When the holder got it; absent if that was before a restart."),
    ),
)
_PLUGIN = _object(
    "A device plugin that registered on this node. Read only.",
    spec=_object(
        "What it said of itself.",
        resource=_text("The resource that it offers."),
        socket=_text("Where it listens; absent while it is awaited after a restart."),
        api=_text("The version of the device plugin API it speaks."),
        options=_object(
            "Which of the optional calls it wants.",
            preStartRequired=_flag("It is called before a container starts."),
            getPreferredAllocationAvailable=_flag("It is asked which devices go well together."),
        ),
    ),
    status=_object(
        "How it is.",
        state=_text("Connected, Silent, Disconnected, Standby or Awaited."),
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
_HOLDER = _object(
    "A pod that has devices of device plugins on this node. Read only.",
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
                options=_OPTIONS,
            ),
        ),
    ),
)
_SCHEMAS = {"Device": _DEVICE, "Plugin": _PLUGIN, "Holder": _HOLDER}
