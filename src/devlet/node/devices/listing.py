"""The inventory and the holdings as people see them: records of plugins and devices, and statuses of containers."""

from collections.abc import Iterable

from devlet.node.devices.holdings import Holding, Holdings
from devlet.node.devices.inventory import UNKNOWN, Inventory, Resource
from devlet.node.devices.order import in_order
from devlet.node.devices.records import DeviceRecord, DeviceState, PluginRecord, PluginState
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.objects.types.container import ResourceHealth, ResourceStatus

__all__ = ["device_records", "plugin_records", "resource_statuses"]


def resource_statuses(held: Iterable[Holding], inventory: Inventory) -> tuple[ResourceStatus, ...]:
    """Return the entries of a container's `allocatedResourcesStatus`. The health is empty if the plugin was there
    before a restart and has not listed its devices since."""
    return tuple(
        ResourceStatus(
            name=each.resource,
            resources=tuple(
                ResourceHealth(resource_id=device, health=_told(inventory.get(each.resource), device))
                for device in each.devices
            ),
        )
        for each in held
    )


def plugin_records(inventory: Inventory, holdings: Holdings) -> list[PluginRecord]:
    counts = holdings.counts()
    return [
        record
        for resource in inventory.resources()
        for record in _plugin_records(resource, counts.get(resource.name, 0))
    ]


def _plugin_records(resource: Resource, held: int) -> list[PluginRecord]:
    """The one that counts first."""
    if not resource.instances:
        since = resource.stopped or resource.since
        state = PluginState.DISCONNECTED if resource.fresh else PluginState.AWAITED
        unhealthy = len(resource.devices)
        return [PluginRecord(resource.name, None, "", state, since.time, held=held, unhealthy=unhealthy)]
    shown = resource.current or resource.instances[-1]
    found: list[PluginRecord] = []
    for each in reversed(resource.instances):
        counts = each is shown
        healthy = len(resource.healthy) if counts else 0
        record = PluginRecord(
            resource.name,
            each.offer.socket,
            each.offer.api,
            resource.state(each),
            each.since.time,
            each.options,
            each.pid,
            healthy=healthy,
            unhealthy=len(resource.devices) - healthy if counts else 0,
            held=held if counts else 0,
            message=each.message,
        )
        found.insert(0 if counts else len(found), record)
    return found


def device_records(inventory: Inventory, holdings: Holdings) -> list[DeviceRecord]:
    """By resource, then in natural order; with those that are held but no longer listed."""
    owners = _owners(holdings)
    found = []
    for name in sorted({each.name for each in inventory.resources()} | owners.keys()):
        resource, held = inventory.get(name), owners.get(name, {})
        ids = dict.fromkeys([*(resource.devices if resource else ()), *held])
        found += [_device_record(name, id, resource, held.get(id), holdings) for id in in_order(ids, key=str)]
    return found


def _owners(holdings: Holdings) -> dict[ResourceName, dict[DeviceID, Holding]]:
    """The container that got a device last is shown as its holder."""
    found: dict[ResourceName, dict[DeviceID, Holding]] = {}
    for holding in holdings:
        found.setdefault(holding.resource, {}).update(dict.fromkeys(holding.devices, holding))
    return found


def _device_record(
    name: ResourceName, id: DeviceID, resource: Resource | None, holding: Holding | None, holdings: Holdings
) -> DeviceRecord:
    device = resource.devices.get(id) if resource else None
    record = DeviceRecord(name, id, _health(resource, id), device.nodes if device else (), DeviceState.FREE)
    if holding is not None:
        state = DeviceState.RELEASING if holdings.releasing(holding.pod) else DeviceState.HELD
        nodes = device.nodes if device else holding.devices[id]
        return DeviceRecord(name, id, record.health, nodes, state, holding.pod, holding.container, holding.since)
    if (owner := holdings.owner(name, id)) is not None:
        return DeviceRecord(name, id, record.health, record.nodes, DeviceState.RESERVED, owner)
    return record


def _health(resource: Resource | None, device: DeviceID) -> str:
    return resource.health(device) if resource else UNKNOWN


def _told(resource: Resource | None, device: DeviceID) -> str:
    return "" if resource and resource.unheard else _health(resource, device)
