from datetime import UTC, datetime
from pathlib import Path

from devlet.node.devices.allocations import NO_NODE, Allocation, Allocations
from devlet.node.devices.inventory import Inventory, Moment
from devlet.node.devices.listing import device_records, plugin_records, resource_statuses
from devlet.node.devices.records import DeviceRecord, DeviceState, PluginState
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Device, Grant, Options

GPU = ResourceName("vendor.com/gpu")
MAIN = ContainerName("main")
TIME = datetime(2026, 1, 1, tzinfo=UTC)
NOW = Moment(TIME, 0.0)
D1, D2, D10 = DeviceID("d1"), DeviceID("d2"), DeviceID("d10")


def inventory(*devices: Device) -> Inventory:
    made = Inventory(300)
    instance, _ = made.register(Offer(GPU, Path("/p/a.sock")), Options(pre_start=True), 7, NOW)
    made.report(instance, devices, NOW)
    return made


def allocation(pod: str, device: DeviceID, container: str = "main") -> Allocation:
    return Allocation(PodUID(pod), ContainerName(container), GPU, {NO_NODE: (device,)}, Grant(), TIME)


def test_devices_are_listed_in_order_with_their_holders() -> None:
    allocations = Allocations()
    allocations.add(allocation("u1", D1))
    allocations.reserve(PodUID("u2"), GPU, [D2])
    assert device_records(inventory(Device(D10), Device(D2, "Sick", (1,)), Device(D1)), allocations) == [
        DeviceRecord(GPU, D1, "Healthy", (), DeviceState.HELD, PodUID("u1"), MAIN, TIME),
        DeviceRecord(GPU, D2, "Unhealthy", (1,), DeviceState.RESERVED, PodUID("u2")),
        DeviceRecord(GPU, D10, "Healthy", (), DeviceState.FREE),
    ]


def test_an_allocated_device_that_is_not_listed_is_shown() -> None:
    allocations = Allocations()
    allocations.add(allocation("u1", D1))
    (record,) = device_records(Inventory(300), allocations)
    assert (record.id, record.health, record.state) == (D1, "Unknown", DeviceState.HELD)


def test_the_container_that_got_a_device_last_is_its_holder() -> None:
    allocations = Allocations()
    allocations.add(allocation("u1", D1, "init"))
    allocations.add(allocation("u1", D1, "main"))
    (record,) = device_records(inventory(Device(D1)), allocations)
    assert record.container == "main"


def test_a_plugin_is_listed_with_its_counts() -> None:
    allocations = Allocations()
    allocations.add(allocation("u1", D1))
    (record,) = plugin_records(inventory(Device(D1), Device(D2, "Unhealthy")), allocations)
    assert (record.healthy, record.unhealthy, record.held, record.pid) == (1, 1, 1, 7)
    assert record.state == PluginState.CONNECTED and record.options.pre_start


def test_a_plugin_from_before_a_restart_is_awaited_and_a_deregistered_one_is_not() -> None:
    restored = Inventory(300)
    restored.restore([GPU], NOW)
    (record,) = plugin_records(restored, Allocations())
    assert record.state == PluginState.AWAITED and record.socket is None
    gone = inventory(Device(D1))
    gone.remove(gone.resources()[0].instances[0], NOW)
    (record,) = plugin_records(gone, Allocations())
    assert record.state == PluginState.DISCONNECTED and record.unhealthy == 1


def test_a_container_status_has_the_health_of_each_device() -> None:
    held = [allocation("u1", D1), allocation("u1", D10)]
    first, second = resource_statuses(held, inventory(Device(D1)))
    assert [(each.resource_id, each.health) for each in first.resources] == [("d1", "Healthy")]
    assert [(each.resource_id, each.health) for each in second.resources] == [("d10", "Unknown")]


def test_after_a_restart_the_health_is_empty_until_the_plugin_lists() -> None:
    restored = Inventory(300)
    restored.restore([GPU], NOW)
    held = [allocation("u1", D1)]
    (status,) = resource_statuses(held, restored)
    assert [(each.resource_id, each.health) for each in status.resources] == [("d1", "")]
    instance, _ = restored.register(Offer(GPU, Path("/p/a.sock")), Options(), 7, NOW)
    restored.report(instance, [Device(D1, "Sick")], NOW)
    (status,) = resource_statuses(held, restored)
    assert [each.health for each in status.resources] == ["Unhealthy"]
