"""Decode and check the device lists of a plugin.

All API versions send the same messages, the old ones without topology. A list is accepted or refused as a whole, since
a plugin that sends an empty id may have meant anything. Only harmless errors are ignored: a repeated id (the last entry
counts) and NUMA nodes that no machine has.
"""

import logging

from google.protobuf.message import DecodeError

from devlet.errors import PluginRefused
from devlet.kit.facts import facts
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.devices import HEALTHY, UNHEALTHY, Device
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["DOCUMENTED_ID_LENGTH", "ID_LENGTH", "NUMA_NODES", "DeviceLists"]

log = logging.getLogger(__name__)

DOCUMENTED_ID_LENGTH = 63  # not enforced by kubelets, so plugins exceed it
ID_LENGTH = 1_024  # bytes; a list with a longer id is refused
NUMA_NODES = 64

# Use the same string object for all: most of 50,000 devices have one of these.
_HEALTH = {HEALTHY: HEALTHY, UNHEALTHY: UNHEALTHY}


class DeviceLists:
    """Decodes the lists of one plugin. Each kind of ignored error is logged once, not with each list."""

    def __init__(self, resource: ResourceName, max_devices: int) -> None:
        self._resource = resource
        self._max_devices = max_devices
        self._mentioned: set[str] = set()

    def decode(self, blob: bytes) -> tuple[Device, ...]:
        """Raise `PluginRefused` if the list cannot be decoded or is invalid. This takes a few µs per device: decode
        long lists in a thread."""
        try:
            message = pb.ListAndWatchResponse.FromString(blob)
        except DecodeError as e:
            raise self._refused(f"cannot be decoded: {e}") from e
        listed = message.devices
        if len(listed) > self._max_devices:
            raise self._refused(f"has {len(listed)} devices, more than the {self._max_devices} that are accepted")
        devices = {device.id: device for device in map(self._device, listed)}
        if len(devices) < len(listed):
            self._mention("device listed more than once; the last entry counts", count=len(listed) - len(devices))
        return tuple(devices.values())

    def _device(self, message: pb.Device) -> Device:
        id, health = message.ID, message.health
        if not id:
            raise self._refused("has a device without id")
        if len(id) > DOCUMENTED_ID_LENGTH:
            self._check_long(id)
        nodes = self._nodes(message.topology) if message.HasField("topology") else ()
        return Device(DeviceID(id), _HEALTH.get(health, health), nodes)

    def _check_long(self, id: str) -> None:
        size = len(id.encode())
        if size > ID_LENGTH:
            raise self._refused(f"has a device whose id has {size} bytes, more than {ID_LENGTH}: {id[:63]}…")
        self._mention("device id longer than the documented 63 characters", deviceID=id)

    def _nodes(self, topology: pb.TopologyInfo) -> tuple[int, ...]:
        given = [node.ID for node in topology.nodes]
        if len(given) == 1 and 0 <= given[0] < NUMA_NODES:
            return (given[0],)
        nodes = sorted({node for node in given if 0 <= node < NUMA_NODES})
        if any(not 0 <= node < NUMA_NODES for node in given):
            self._mention("NUMA nodes outside of 0 to 63 ignored", nodes=given[:NUMA_NODES])
        return tuple(nodes)

    def _mention(self, text: str, **values: object) -> None:
        if text not in self._mentioned:
            self._mentioned.add(text)
            log.warning(text, extra=facts(resourceName=self._resource, **values))

    def _refused(self, problem: str) -> PluginRefused:
        return PluginRefused(self._resource, f"its device list {problem}")
