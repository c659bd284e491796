from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from devlet.node.devices.inventory import UNKNOWN, Capacity, Instance, Inventory, Moment
from devlet.node.devices.records import PluginState
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import HEALTHY, UNHEALTHY, Device, Options

GPU = ResourceName("vendor.com/gpu")
NIC = ResourceName("vendor.com/nic")
GRACE = 300.0
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> Moment:
    return Moment(START + timedelta(seconds=seconds), seconds)


def offer(socket: str = "a.sock", resource: ResourceName = GPU) -> Offer:
    return Offer(resource, Path("/d") / socket)


def devices(healthy: str = "", unhealthy: str = "") -> list[Device]:
    good = [Device(DeviceID(id), HEALTHY) for id in healthy.split()]
    return good + [Device(DeviceID(id), UNHEALTHY) for id in unhealthy.split()]


def register(inventory: Inventory, socket: str = "a.sock", resource: ResourceName = GPU, now: float = 0) -> Instance:
    return inventory.register(offer(socket, resource), Options(), None, at(now))[0]


def counts(inventory: Inventory, resource: ResourceName = GPU) -> tuple[int | None, int | None]:
    found = inventory.capacity()
    return found.capacity.get(resource), found.allocatable.get(resource)


@pytest.fixture
def inventory() -> Inventory:
    return Inventory(GRACE)


@pytest.mark.spec("DP-8.03")
def test_two_healthy_devices_are_capacity_and_allocatable(inventory: Inventory) -> None:
    inventory.report(register(inventory), devices("d1 d2"), at(0))
    assert counts(inventory) == (2, 2)


def test_a_plugin_without_a_list_has_no_capacity_at_all(inventory: Inventory) -> None:
    register(inventory)
    assert inventory.capacity() == Capacity({}, {}, frozenset())
    assert GPU in inventory


@pytest.mark.spec("DP-8.04")
def test_a_second_instance_with_the_same_devices_changes_nothing(inventory: Inventory) -> None:
    inventory.report(register(inventory), devices("d1 d2"), at(0))
    second = register(inventory, "b.sock")
    assert counts(inventory) == (2, 2)
    inventory.report(second, devices("d1 d2"), at(0))
    assert counts(inventory) == (2, 2)


@pytest.mark.spec("DP-8.05")
def test_the_newest_list_replaces_the_old_devices(inventory: Inventory) -> None:
    inventory.report(register(inventory), devices("d1 d2"), at(0))
    inventory.report(register(inventory, "b.sock"), devices("d3"), at(0))
    assert [*inventory.resources()[0].devices] == ["d3"]
    assert counts(inventory) == (1, 1)


@pytest.mark.spec("DP-8.15")
def test_capacity_counts_all_devices_and_allocatable_the_healthy_ones(inventory: Inventory) -> None:
    plugin = register(inventory)
    for healthy, unhealthy, expected in [
        ("d1 d2", "d3", (3, 2)),
        ("d1 d2", "", (2, 2)),
        ("d1", "d2 d3", (3, 1)),
        ("", "d2 d3", (2, 0)),
    ]:
        inventory.report(plugin, devices(healthy, unhealthy), at(0))
        assert counts(inventory) == expected


@pytest.mark.spec("DP-8.10")
@pytest.mark.spec("DP-8.13")
def test_a_lost_plugin_keeps_its_capacity_until_the_grace_period_is_over(inventory: Inventory) -> None:
    plugin = register(inventory)
    inventory.report(plugin, devices("d1 d2", "d3"), at(0))
    inventory.disconnect(plugin, "gone", at(10))
    assert counts(inventory) == (3, 0)
    assert inventory.expire(at(10 + GRACE)) == []
    assert [each.name for each in inventory.expire(at(10.5 + GRACE))] == [GPU]
    assert counts(inventory) == (None, None)
    assert GPU not in inventory and inventory.capacity().removed == {GPU}


@pytest.mark.spec("DP-8.12")
def test_a_list_that_fails_at_once_leaves_no_allocatable_devices(inventory: Inventory) -> None:
    inventory.disconnect(register(inventory), "no list", at(0))
    assert counts(inventory) == (0, 0)


@pytest.mark.spec("DP-8.16")
def test_a_resource_that_expires_is_returned_once_and_others_stay(inventory: Inventory) -> None:
    gpu, nic = register(inventory), register(inventory, "n.sock", NIC)
    inventory.report(gpu, devices("d1"), at(0))
    inventory.report(nic, devices("n1"), at(0))
    inventory.disconnect(gpu, "gone", at(0))
    assert [each.name for each in inventory.expire(at(GRACE + 1))] == [GPU]
    assert inventory.expire(at(GRACE + 2)) == []
    assert counts(inventory, NIC) == (1, 1)


def test_a_removed_resource_that_comes_back_is_no_longer_removed(inventory: Inventory) -> None:
    inventory.disconnect(register(inventory), "gone", at(0))
    inventory.expire(at(GRACE + 1))
    register(inventory)
    assert inventory.capacity().removed == frozenset()


@pytest.mark.spec("DP-8.17")
def test_a_restored_resource_is_known_without_devices_and_its_list_is_pending(inventory: Inventory) -> None:
    inventory.restore([GPU], at(0))
    assert counts(inventory) == (0, 0) and GPU in inventory
    assert inventory.is_pending(GPU, at(GRACE)) and not inventory.is_pending(GPU, at(GRACE + 1))
    inventory.report(register(inventory), devices("d1"), at(1))
    assert counts(inventory) == (1, 1) and not inventory.is_pending(GPU, at(1))


@pytest.mark.spec("DP-8.18")
def test_allocatable_devices_are_the_healthy_ones(inventory: Inventory) -> None:
    plugin = register(inventory)
    inventory.report(plugin, devices("d1", "d2"), at(0))
    assert inventory.allocatable() == {GPU: tuple(devices("d1"))}
    inventory.report(plugin, devices("d1 d2"), at(0))
    assert inventory.allocatable() == {GPU: tuple(devices("d1 d2"))}


@pytest.mark.spec("DP-8.20")
def test_a_resource_without_healthy_devices_has_none_to_allocate(inventory: Inventory) -> None:
    inventory.report(register(inventory), devices("", "d1"), at(0))
    inventory.report(register(inventory, "n.sock", NIC), devices("n1", "n2"), at(0))
    assert inventory.allocatable() == {NIC: tuple(devices("n1"))}


@pytest.mark.spec("DP-9.01")
def test_the_end_of_an_old_stream_does_not_touch_the_new_instance(inventory: Inventory) -> None:
    old = register(inventory)
    inventory.report(old, devices("d1"), at(0))
    inventory.report(register(inventory, "b.sock"), devices("d1 d2"), at(0))
    assert inventory.disconnect(old, "gone", at(1)) == frozenset()
    assert counts(inventory) == (2, 2)


@pytest.mark.spec("DP-9.01")
def test_lists_of_a_standby_are_not_used(inventory: Inventory) -> None:
    old = register(inventory)
    inventory.report(register(inventory, "b.sock"), devices("d1 d2"), at(0))
    assert inventory.report(old, devices("", "d1 d2"), at(0)) == frozenset()
    assert counts(inventory) == (2, 2)


@pytest.mark.spec("DP-9.01")
def test_a_standby_becomes_current_when_the_newest_instance_disconnects(inventory: Inventory) -> None:
    old = register(inventory)
    inventory.report(old, devices("d1"), at(0))
    new = register(inventory, "b.sock")
    inventory.report(new, devices("d1 d2"), at(0))
    resource = inventory.resources()[0]
    assert resource.state(old) == PluginState.STANDBY
    inventory.disconnect(new, "gone", at(1))
    assert counts(inventory) == (1, 1) and resource.current is old and resource.stopped is None


def test_a_resource_expires_only_while_no_plugin_is_connected(inventory: Inventory) -> None:
    assert inventory.expires_in(GPU, at(0)) is None
    plugin = register(inventory)
    assert inventory.expires_in(GPU, at(0)) is None
    inventory.disconnect(plugin, "gone", at(0))
    assert inventory.expires_in(GPU, at(100)) == GRACE - 100 and inventory.expires_in(GPU, at(GRACE + 1)) == 0


def test_the_health_from_before_a_restart_expires_before_the_resource() -> None:
    inventory = Inventory(GRACE, 30)
    inventory.restore([GPU], at(0))
    assert inventory.expires_in(GPU, at(10)) == 20
    assert inventory.expire_health(at(29)) == []
    assert inventory.expire_health(at(30)) == [GPU] and inventory.expire_health(at(30)) == []
    assert inventory.expires_in(GPU, at(30)) == GRACE - 30


def test_the_health_from_before_a_restart_does_not_expire_while_a_plugin_is_connected() -> None:
    inventory = Inventory(GRACE, 30)
    inventory.restore([GPU], at(0))
    plugin = register(inventory)
    assert inventory.expire_health(at(31)) == [] and inventory.resources()[0].health_pending
    inventory.report(plugin, devices("d1"), at(32))
    assert not inventory.resources()[0].health_pending


def test_a_plugin_that_is_back_but_silent_does_not_expire(inventory: Inventory) -> None:
    inventory.restore([GPU], at(0))
    plugin = register(inventory, now=GRACE - 1)
    assert inventory.expire(at(GRACE + 60)) == []
    inventory.report(plugin, devices("d1"), at(GRACE + 61))
    inventory.disconnect(plugin, "gone", at(GRACE + 62))
    inventory.reconnect(plugin, Options(), None, at(GRACE + 63))
    assert inventory.expire(at(3 * GRACE)) == [] and inventory.resources()[0].health(DeviceID("d1")) == UNKNOWN


def test_late_events_of_a_forgotten_plugin_change_nothing(inventory: Inventory) -> None:
    plugin = register(inventory)
    inventory.disconnect(plugin, "gone", at(0))
    inventory.expire(at(GRACE + 1))
    assert inventory.report(plugin, devices("d1"), at(GRACE + 2)) == frozenset()
    assert inventory.disconnect(plugin, "gone", at(GRACE + 3)) == frozenset() and GPU not in inventory


def test_a_plugin_on_the_same_socket_replaces_its_predecessor(inventory: Inventory) -> None:
    old = register(inventory)
    new, replaced = inventory.register(offer(), Options(), 7, at(1))
    assert replaced == [old] and inventory.resources()[0].instances == [new]
    assert new.generation > old.generation


def test_an_instance_that_answers_again_is_silent_until_it_lists(inventory: Inventory) -> None:
    plugin = register(inventory)
    inventory.report(plugin, devices("d1"), at(0))
    inventory.disconnect(plugin, "gone", at(1))
    resource = inventory.resources()[0]
    assert resource.state(plugin) == PluginState.DISCONNECTED
    inventory.reconnect(plugin, Options(), 8, at(2))
    assert resource.state(plugin) == PluginState.SILENT and counts(inventory) == (1, 0)
    inventory.report(plugin, devices("d1"), at(3))
    assert resource.state(plugin) == PluginState.CONNECTED and counts(inventory) == (1, 1)


@pytest.mark.spec("DP-8.21")
def test_only_devices_with_a_different_health_are_changes(inventory: Inventory) -> None:
    plugin = register(inventory)
    assert inventory.report(plugin, devices("d1 d2"), at(0)) == {"d1", "d2"}  # from unknown
    assert inventory.report(plugin, devices("d1 d2"), at(0)) == frozenset()
    assert inventory.report(plugin, devices("d1", "d2"), at(0)) == {"d2"}
    assert inventory.report(plugin, devices("d1"), at(0)) == {"d2"}


@pytest.mark.spec("DP-9.18")
def test_a_device_that_no_plugin_lists_has_unknown_health(inventory: Inventory) -> None:
    plugin = register(inventory)
    inventory.report(plugin, devices("d1"), at(0))
    resource = inventory.resources()[0]
    assert resource.health(DeviceID("gone")) == UNKNOWN
    assert inventory.disconnect(plugin, "gone", at(0)) == {"d1"}
    assert resource.health(DeviceID("d1")) == UNKNOWN


def test_devices_are_in_natural_order(inventory: Inventory) -> None:
    inventory.report(register(inventory), devices("d10 d2 d1"), at(0))
    assert inventory.resources()[0].healthy == ("d1", "d2", "d10")


def test_a_deregistered_instance_stops_its_resource(inventory: Inventory) -> None:
    plugin = register(inventory)
    inventory.report(plugin, devices("d1"), at(0))
    assert inventory.remove(plugin, at(5)) == {"d1"}
    assert inventory.remove(plugin, at(6)) == frozenset()
    assert counts(inventory) == (1, 0) and not inventory.is_pending(GPU, at(6))


def test_the_healthy_devices_stay_one_object_while_they_are_the_same(inventory: Inventory) -> None:
    plugin = register(inventory)
    inventory.report(plugin, devices("d1 d2"), at(0))
    before = inventory.registered()[GPU]
    inventory.report(plugin, devices("d2 d1"), at(0))
    assert inventory.registered()[GPU] is before
