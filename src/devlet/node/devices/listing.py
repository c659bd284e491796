"""The inventory and the allocations as views: records of plugins and devices, and statuses of containers."""

from collections.abc import Iterable

from devlet.node.devices.allocations import Allocation, Allocations
from devlet.node.devices.inventory import UNKNOWN, Inventory, Resource
from devlet.node.devices.order import in_order
from devlet.node.devices.records import DeviceRecord, DeviceState, PluginRecord, PluginState
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.objects.types.container import ResourceHealth, ResourceStatus

__all__ = ["device_records", "plugin_records", "resource_statuses"]


def resource_statuses(held: Iterable[Allocation], inventory: Inventory) -> tuple[ResourceStatus, ...]:
    """Return the entries of a container's `allocatedResourcesStatus`. The health is empty if the plugin was there
    before a restart and has not listed its devices since."""
    return tuple(
        ResourceStatus(
            name=each.resource,
            resources=tuple(
                ResourceHealth(resource_id=device, health=_reported_health(inventory.get(each.resource), device))
                for device in each.devices
            ),
        )
        for each in held
    )


def plugin_records(inventory: Inventory, allocations: Allocations) -> list[PluginRecord]:
    counts = allocations.counts()
    return [
        record
        for resource in inventory.resources()
        for record in _plugin_records(resource, counts.get(resource.name, 0))
    ]


def _plugin_records(resource: Resource, held: int) -> list[PluginRecord]:
    """Return the record of the current instance first."""
    if not resource.instances:
        since = resource.stopped or resource.since
        state = PluginState.DISCONNECTED if resource.reported else PluginState.AWAITED
        unhealthy = len(resource.devices)
        return [PluginRecord(resource.name, None, "", state, since.time, held=held, unhealthy=unhealthy)]
    shown = resource.current or resource.instances[-1]
    found: list[PluginRecord] = []
    for each in reversed(resource.instances):
        is_shown = each is shown
        healthy = len(resource.healthy) if is_shown else 0
        record = PluginRecord(
            resource.name,
            each.offer.socket,
            each.offer.api,
            resource.state(each),
            each.since.time,
            each.options,
            each.pid,
            healthy=healthy,
            unhealthy=len(resource.devices) - healthy if is_shown else 0,
            held=held if is_shown else 0,
            message=each.message,
        )
        found.insert(0 if is_shown else len(found), record)
    return found


def device_records(inventory: Inventory, allocations: Allocations) -> list[DeviceRecord]:
    """Return the devices by resource and in natural order, including those that are allocated but no longer listed."""
    owners = _owners(allocations)
    found = []
    for name in sorted({each.name for each in inventory.resources()} | owners.keys()):
        resource, held = inventory.get(name), owners.get(name, {})
        ids = dict.fromkeys([*(resource.devices if resource else ()), *held])
        found += [_device_record(name, id, resource, held.get(id), allocations) for id in in_order(ids, key=str)]
    return found


def _owners(allocations: Allocations) -> dict[ResourceName, dict[DeviceID, Allocation]]:
    """Return the last allocation of each device: its container is shown as the holder."""
    found: dict[ResourceName, dict[DeviceID, Allocation]] = {}
    for allocation in allocations:
        found.setdefault(allocation.resource, {}).update(dict.fromkeys(allocation.devices, allocation))
    return found


def _device_record(
    name: ResourceName, id: DeviceID, resource: Resource | None, allocation: Allocation | None, allocations: Allocations
) -> DeviceRecord:
    device = resource.devices.get(id) if resource else None
    record = DeviceRecord(name, id, _health(resource, id), device.nodes if device else (), DeviceState.FREE)
    if allocation is not None:
        state = DeviceState.RELEASING if allocations.releasing(allocation.pod) else DeviceState.HELD
        nodes = device.nodes if device else allocation.devices[id]
        return DeviceRecord(
            name, id, record.health, nodes, state, allocation.pod, allocation.container, allocation.since
        )
    if (owner := allocations.owner(name, id)) is not None:
        return DeviceRecord(name, id, record.health, record.nodes, DeviceState.RESERVED, owner)
    return record


def _health(resource: Resource | None, device: DeviceID) -> str:
    return resource.health(device) if resource else UNKNOWN


def _reported_health(resource: Resource | None, device: DeviceID) -> str:
    return "" if resource and resource.health_pending else _health(resource, device)
