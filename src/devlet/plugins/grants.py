"""Convert a `Grant` to and from a v1beta1 ContainerAllocateResponse, as on the wire and in the checkpoint.

Encoding is deterministic: equal grants give equal bytes, whatever the order of their maps.
"""

from collections.abc import Iterable

from google.protobuf.message import DecodeError

from devlet.errors import StateCorrupt
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins.devices import Grant
from devlet.wire.deviceplugin_v1alpha import api_pb2 as pb_alpha
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["decode", "encode", "from_message", "to_message"]


def encode(grant: Grant) -> bytes:
    return to_message(grant).SerializeToString(deterministic=True)


def decode(blob: bytes) -> Grant:
    """Raise `StateCorrupt` if the bytes cannot be decoded."""
    try:
        return from_message(pb.ContainerAllocateResponse.FromString(blob))
    except DecodeError as e:
        raise StateCorrupt(f"the stored answer of a device plugin cannot be decoded: {e}") from e


def to_message(grant: Grant) -> pb.ContainerAllocateResponse:
    return pb.ContainerAllocateResponse(
        envs=grant.env,
        mounts=[
            pb.Mount(container_path=m.container_path, host_path=m.host_path, read_only=m.read_only)
            for m in grant.mounts
        ],
        devices=[
            pb.DeviceSpec(container_path=d.container_path, host_path=d.host_path, permissions=d.permissions)
            for d in grant.devices
        ],
        annotations=grant.annotations,
        cdi_devices=[pb.CDIDevice(name=name) for name in grant.cdi_devices],
    )


def from_message(message: pb.ContainerAllocateResponse) -> Grant:
    return Grant(
        env=dict(sorted(message.envs.items())),
        mounts=mounts(message.mounts),
        devices=device_nodes(message.devices),
        annotations=dict(sorted(message.annotations.items())),
        cdi_devices=tuple(device.name for device in message.cdi_devices),
    )


def mounts(messages: Iterable[pb.Mount | pb_alpha.Mount]) -> tuple[Mount, ...]:
    return tuple(Mount(m.container_path, m.host_path, m.read_only) for m in messages)


def device_nodes(messages: Iterable[pb.DeviceSpec | pb_alpha.DeviceSpec]) -> tuple[DeviceNode, ...]:
    return tuple(DeviceNode(d.container_path, d.host_path, d.permissions) for d in messages)
