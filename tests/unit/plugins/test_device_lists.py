import logging

import pytest

from devlet.errors import PluginRefused
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.device_lists import DeviceLists
from devlet.plugins.devices import Device
from devlet.testing.fake_plugin_services import device_list


def device(id: str, health: str = "Healthy", *nodes: int) -> Device:
    return Device(DeviceID(id), health, nodes)


def decoded(*devices: Device, limit: int = 100) -> tuple[Device, ...]:
    return DeviceLists(ResourceName("vendor.com/gpu"), limit).decode(device_list(devices))


def test_a_list_is_decoded_in_order_with_health_and_nodes() -> None:
    devices = (device("b", "Unhealthy"), device("a", "Healthy", 0, 1), device("c", "on fire"))
    assert decoded(*devices) == devices


def test_an_empty_list_is_valid() -> None:
    assert decoded() == ()


@pytest.mark.spec("DP-9.19")
def test_the_last_entry_of_a_repeated_id_counts() -> None:
    assert decoded(device("a"), device("b"), device("a", "Unhealthy")) == (device("a", "Unhealthy"), device("b"))


@pytest.mark.spec("DP-9.19")
def test_a_list_with_an_empty_id_is_refused() -> None:
    with pytest.raises(PluginRefused, match=r"^plugin vendor.com/gpu: its device list has a device without id$"):
        decoded(device("a"), device(""))


@pytest.mark.spec("DP-9.31")
def test_ids_of_up_to_1024_bytes_are_accepted_and_longer_ones_refused() -> None:
    assert decoded(device("x" * 1024)) == (device("x" * 1024),)
    with pytest.raises(PluginRefused, match="id has 1025 bytes, more than 1024: xxx"):
        decoded(device("x" * 1025))
    with pytest.raises(PluginRefused, match="id has 1026 bytes"):
        decoded(device("ä" * 513))


@pytest.mark.spec("DP-9.31")
def test_a_list_of_too_many_devices_is_refused() -> None:
    assert len(decoded(*map(device, "abc"), limit=3)) == 3
    with pytest.raises(PluginRefused, match="has 4 devices, more than the 3 that are accepted"):
        decoded(*map(device, "abcd"), limit=3)


def test_impossible_numa_nodes_are_dropped_and_the_rest_is_sorted() -> None:
    odd = (device("a", "Healthy", 1, -1, 0, 64, 1), device("b", "Healthy", 63), device("c", "Healthy", -1))
    assert [one.nodes for one in decoded(*odd)] == [(0, 1), (63,), ()]


def test_each_kind_of_ignored_error_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    lists = DeviceLists(ResourceName("vendor.com/gpu"), 100)
    blob = device_list([device("x" * 64), device("y" * 64), device("a"), device("a"), device("b", "Healthy", 99)])
    with caplog.at_level(logging.WARNING):
        lists.decode(blob)
        lists.decode(blob)
    assert [record.getMessage() for record in caplog.records] == [
        "device id longer than the documented 63 characters",
        "NUMA nodes outside of 0 to 63 ignored",
        "device listed more than once; the last entry counts",
    ]


@pytest.mark.parametrize("blob", [b"\x0a\x05", b"\xff\xff", b"\x0a\x03\x0a\x01\xff"])
def test_bytes_that_are_not_a_list_are_refused(blob: bytes) -> None:
    with pytest.raises(PluginRefused, match="its device list cannot be decoded"):
        DeviceLists(ResourceName("vendor.com/gpu"), 100).decode(blob)
