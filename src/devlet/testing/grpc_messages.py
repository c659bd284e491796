"""Decode the messages of calls between a node and a driver, by the path of the method.

Only the plugin APIs that drivers use today are known. Messages of other calls, and bytes that cannot be decoded, are
None.
"""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from devlet.wire.deviceplugin_v1beta1 import api_pb2 as plugin
from devlet.wire.dra_health import api_pb2 as health
from devlet.wire.dra_v1 import api_pb2 as dra_v1
from devlet.wire.dra_v1beta1 import api_pb2 as dra_v1beta1
from devlet.wire.pluginregistration import api_pb2 as registration

__all__ = ["GET_INFO", "METHODS", "REGISTER", "answer", "request"]

GET_INFO: Final = "/pluginregistration.Registration/GetInfo"
REGISTER: Final = "/v1beta1.Registration/Register"

_Types = tuple[type[Message], type[Message]]

_V1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
_V1BETA1 = "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"
_PLUGIN = "/v1beta1.DevicePlugin/"

METHODS: Final[Mapping[str, _Types]] = {
    GET_INFO: (registration.InfoRequest, registration.PluginInfo),
    "/pluginregistration.Registration/NotifyRegistrationStatus": (
        registration.RegistrationStatus,
        registration.RegistrationStatusResponse,
    ),
    _V1 + "NodePrepareResources": (dra_v1.NodePrepareResourcesRequest, dra_v1.NodePrepareResourcesResponse),
    _V1 + "NodeUnprepareResources": (dra_v1.NodeUnprepareResourcesRequest, dra_v1.NodeUnprepareResourcesResponse),
    _V1BETA1 + "NodePrepareResources": (
        dra_v1beta1.NodePrepareResourcesRequest,
        dra_v1beta1.NodePrepareResourcesResponse,
    ),
    _V1BETA1 + "NodeUnprepareResources": (
        dra_v1beta1.NodeUnprepareResourcesRequest,
        dra_v1beta1.NodeUnprepareResourcesResponse,
    ),
    "/v1.DRAResourceHealth/NodeWatchResources": (health.NodeWatchResourcesRequest, health.NodeWatchResourcesResponse),
    "/v1alpha1.DRAResourceHealth/NodeWatchResources": (
        health.NodeWatchResourcesRequest,
        health.NodeWatchResourcesResponse,
    ),
    REGISTER: (plugin.RegisterRequest, plugin.Empty),
    _PLUGIN + "GetDevicePluginOptions": (plugin.Empty, plugin.DevicePluginOptions),
    _PLUGIN + "ListAndWatch": (plugin.Empty, plugin.ListAndWatchResponse),
    _PLUGIN + "GetPreferredAllocation": (plugin.PreferredAllocationRequest, plugin.PreferredAllocationResponse),
    _PLUGIN + "Allocate": (plugin.AllocateRequest, plugin.AllocateResponse),
    _PLUGIN + "PreStartContainer": (plugin.PreStartContainerRequest, plugin.PreStartContainerResponse),
}


def request(path: str, message: bytes) -> Any:
    """Return a request as a protobuf message."""
    return _decoded(METHODS[path][0], message) if path in METHODS else None


def answer(path: str, message: bytes) -> Any:
    """Return an answer, or one message of a stream, as a protobuf message."""
    return _decoded(METHODS[path][1], message) if path in METHODS else None


def _decoded(kind: type[Message], message: bytes) -> Message | None:
    try:
        return kind.FromString(message)
    except DecodeError:
        return None
