"""The list of devices that a plugin sends, which is checked as a whole and encoded once for all its readers.

A list with a mistake is not sent at all. The Go helper sends every list: a device that is listed as healthy and again
as unhealthy is then both.
"""

import logging
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from devlet.errors import InvalidInput
from devlet.kit.facts import facts
from devlet.objects.names import extended_resource_name
from devlet.sdk.mistakes import listed
from devlet.sdk.values import HEALTHY, UNHEALTHY, PluginDevice
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

__all__ = ["ID_LENGTH", "KUBELET_LIMIT", "DeviceList", "check_resource", "device_list"]

log = logging.getLogger(__name__)

ID_LENGTH: Final = 63  # characters, as documented
KUBELET_LIMIT: Final = 4 << 20  # bytes of a message that a kubelet accepts


class DeviceList(Struct, frozen=True):
    """`message` is the serialised ListAndWatchResponse."""

    devices: tuple[PluginDevice, ...]
    ids: frozenset[str]
    message: bytes


def check_resource(name: str, plugin: str) -> None:
    """Raise InvalidInput if no node would register the resource."""
    if not name or not isinstance(name, str):
        raise InvalidInput(f'{plugin} has no resource: set resource = "example.com/led"')
    if extended_resource_name(name):
        rule = "expected domain/name outside of kubernetes.io, such as example.com/led"
        raise InvalidInput(f"{name!r} is not the name of an extended resource: {rule}")


def device_list(resource: str, devices: Iterable[PluginDevice], id_length: int = ID_LENGTH) -> DeviceList:
    """Return a checked list. Raise InvalidInput, which names the device, if a device is not valid."""
    found: tuple[PluginDevice, ...] = listed(devices, f"devices() of {resource}", "PluginDevice")
    ids: set[str] = set()
    for device in found:
        if problem := _problem(device, ids, id_length):
            raise InvalidInput(f"the device list of {resource} is not sent: {problem}")
        ids.add(device.id)
    message = pb.ListAndWatchResponse(devices=map(_message, found)).SerializeToString()
    if len(message) > KUBELET_LIMIT:
        sizes = facts(resourceName=resource, bytes=len(message), devices=len(found))
        log.warning("device list too large for a kubelet, which accepts 4 MiB: use shorter ids", extra=sizes)
    return DeviceList(found, frozenset(ids), message)


def _problem(device: object, before: set[str], id_length: int) -> str:
    """Return what is wrong with a device, also with its types; an empty string if nothing is."""
    if not isinstance(device, PluginDevice):
        return f"{device!r} is not a PluginDevice"
    if problem := _id_problem(device.id, id_length):
        return problem
    if device.id in before:
        return f"two devices have the id {device.id!r}"
    if device.health not in (HEALTHY, UNHEALTHY):
        return f"the health of {device.id!r} is {device.health!r}, expected Healthy or Unhealthy"
    if not _are_nodes(device.numa_nodes):
        return f"the NUMA nodes of {device.id!r} are {device.numa_nodes}, expected numbers from 0, or none"
    return ""


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _are_nodes(value: object) -> bool:
    return isinstance(value, Iterable) and all(isinstance(each, int) and 0 <= each < 1 << 63 for each in value)


def _id_problem(id: str, most: int) -> str:
    if not _is_text(id):
        return f"a device has the id {id!r}, expected a string of 1 to {most} characters"
    if len(id) > most:
        return f"the id {id!r} has {len(id)} characters, at most {most} are allowed"
    try:
        id.encode()
    except UnicodeEncodeError:
        return f"the id {id!r} is not valid Unicode"
    return ""


def _message(device: PluginDevice) -> pb.Device:
    message = pb.Device(ID=device.id, health=device.health)
    if device.numa_nodes:
        message.topology.nodes.extend(pb.NUMANode(ID=node) for node in device.numa_nodes)
    return message
