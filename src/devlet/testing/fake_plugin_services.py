"""The gRPC side of a fake device plugin: its services in all API versions, as bytes in and bytes out.

What they answer is decided elsewhere (`fake_device_plugin`); here it only gets its form.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

import grpc

from devlet.plugins import grants
from devlet.plugins.device_plugin import Api
from devlet.plugins.devices import Device, Grant, Options
from devlet.testing.plugin_script import Call, Context
from devlet.wire.deviceplugin_v1alpha import api_pb2 as pb_alpha
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb
from devlet.wire.pluginregistration import api_pb2 as pb_registration

__all__ = ["Plugin", "device_list", "register_request", "server"]

Unary = Callable[[bytes, Context], Awaitable[bytes]]

_BIG = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


class Plugin(Protocol):
    """The methods of the fake that the services call."""

    api: Api
    options: Options
    grant: Callable[[Sequence[str]], Grant]
    prefer: Callable[[Sequence[str], Sequence[str], int], Sequence[str]]

    def record(self, call: Call) -> None: ...
    async def act(self, method: str, context: Context) -> bytes | None: ...
    def lists(self, first: bytes | None, context: Context) -> AsyncGenerator[bytes, None]: ...
    def info(self) -> pb_registration.PluginInfo: ...
    def notified(self, registered: bool, error: str) -> None: ...


def server(plugin: Plugin, *, watched: bool, first: Sequence[grpc.GenericRpcHandler] = ()) -> grpc.aio.Server:
    """Return a server that does not listen yet. `first` are asked before the plugin."""
    made = grpc.aio.server(options=_BIG)
    handlers = [_service(plugin, "v1beta1.DevicePlugin", _V1BETA1)]
    if plugin.api is not Api.V1BETA1:
        handlers = [_service(plugin, "deviceplugin.DevicePlugin", {"Allocate": _allocate_old})]
    if watched:
        handlers.append(_service(plugin, "pluginregistration.Registration", _REGISTRATION, streams=False))
    made.add_generic_rpc_handlers([*first, *handlers])
    return made


def device_list(devices: Sequence[Device]) -> bytes:
    return pb.ListAndWatchResponse(devices=[_device(device) for device in devices]).SerializeToString()


def register_request(version: str, endpoint: str, resource: str, options: Options) -> bytes:
    return pb.RegisterRequest(
        version=version, endpoint=endpoint, resource_name=resource, options=_options(options)
    ).SerializeToString()


Answer = Callable[[Plugin, bytes], tuple[Call, Callable[[], bytes]]]


def _service(
    plugin: Plugin, name: str, methods: Mapping[str, Answer], *, streams: bool = True
) -> grpc.GenericRpcHandler:
    handlers: dict[str, Any] = {
        method: grpc.unary_unary_rpc_method_handler(_unary(plugin, method, answer))
        for method, answer in methods.items()
    }
    if streams:
        handlers["ListAndWatch"] = grpc.unary_stream_rpc_method_handler(_list_and_watch(plugin))
    return grpc.method_handlers_generic_handler(name, handlers)


def _unary(plugin: Plugin, method: str, answer: Answer) -> Unary:
    async def handle(blob: bytes, context: Context) -> bytes:
        call, right = answer(plugin, blob)
        plugin.record(call)
        wrong = await plugin.act(method, context)
        return right() if wrong is None else wrong

    return handle


def _list_and_watch(plugin: Plugin) -> Callable[[bytes, Context], AsyncIterator[bytes]]:
    async def handle(blob: bytes, context: Context) -> AsyncIterator[bytes]:
        plugin.record(Call("ListAndWatch"))
        wrong = await plugin.act("ListAndWatch", context)
        async with aclosing(plugin.lists(wrong, context)) as messages:
            async for message in messages:
                yield message

    return handle


def _get_options(plugin: Plugin, blob: bytes) -> tuple[Call, Callable[[], bytes]]:
    return Call("GetDevicePluginOptions"), lambda: _options(plugin.options).SerializeToString()


def _allocate(plugin: Plugin, blob: bytes) -> tuple[Call, Callable[[], bytes]]:
    asked = [tuple(one.devices_ids) for one in pb.AllocateRequest.FromString(blob).container_requests]

    def right() -> bytes:
        granted = [grants.to_message(plugin.grant(ids)) for ids in asked]
        return pb.AllocateResponse(container_responses=granted).SerializeToString()

    return Call("Allocate", tuple(id for ids in asked for id in ids)), right


def _allocate_old(plugin: Plugin, blob: bytes) -> tuple[Call, Callable[[], bytes]]:
    ids = tuple(pb_alpha.AllocateRequest.FromString(blob).devicesIDs)

    def right() -> bytes:
        if plugin.api is Api.V1ALPHA2:
            return grants.encode(plugin.grant(ids))
        specs = [_spec(id, plugin.grant([id])) for id in ids]
        return pb_alpha.AllocateResponseV1Alpha1(spec=specs).SerializeToString()

    return Call("Allocate", ids), right


def _preferred(plugin: Plugin, blob: bytes) -> tuple[Call, Callable[[], bytes]]:
    asked = pb.PreferredAllocationRequest.FromString(blob).container_requests[0]
    available, must_include = tuple(asked.available_deviceIDs), tuple(asked.must_include_deviceIDs)

    def right() -> bytes:
        chosen = plugin.prefer(available, must_include, asked.allocation_size)
        answer = pb.ContainerPreferredAllocationResponse(deviceIDs=chosen)
        return pb.PreferredAllocationResponse(container_responses=[answer]).SerializeToString()

    return Call("GetPreferredAllocation", available, must_include, asked.allocation_size), right


def _pre_start(plugin: Plugin, blob: bytes) -> tuple[Call, Callable[[], bytes]]:
    ids = tuple(pb.PreStartContainerRequest.FromString(blob).devices_ids)
    return Call("PreStartContainer", ids), lambda: b""


def _get_info(plugin: Plugin, blob: bytes) -> tuple[Call, Callable[[], bytes]]:
    return Call("GetInfo"), lambda: plugin.info().SerializeToString()


def _notify(plugin: Plugin, blob: bytes) -> tuple[Call, Callable[[], bytes]]:
    status = pb_registration.RegistrationStatus.FromString(blob)
    plugin.notified(status.plugin_registered, status.error)
    return Call("NotifyRegistrationStatus"), lambda: b""


_V1BETA1: Mapping[str, Answer] = {
    "GetDevicePluginOptions": _get_options,
    "GetPreferredAllocation": _preferred,
    "Allocate": _allocate,
    "PreStartContainer": _pre_start,
}
_REGISTRATION: Mapping[str, Answer] = {"GetInfo": _get_info, "NotifyRegistrationStatus": _notify}


def _options(options: Options) -> pb.DevicePluginOptions:
    return pb.DevicePluginOptions(
        pre_start_required=options.pre_start, get_preferred_allocation_available=options.preferred_allocation
    )


def _device(device: Device) -> pb.Device:
    topology = pb.TopologyInfo(nodes=[pb.NUMANode(ID=node) for node in device.nodes]) if device.nodes else None
    return pb.Device(ID=device.id, health=device.health, topology=topology)


def _spec(id: str, grant: Grant) -> pb_alpha.DeviceRuntimeSpec:
    spec = pb_alpha.DeviceRuntimeSpec(ID=id, envs=grant.env)
    for mount in grant.mounts:
        spec.mounts.add(container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only)
    for node in grant.devices:
        spec.devices.add(container_path=node.container_path, host_path=node.host_path, permissions=node.permissions)
    return spec
