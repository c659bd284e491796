import os
from pathlib import Path

import pytest

from devlet.sdk.usb import serial_ports, usb_devices
from tests.support.fake_usb import FakeUsb


def test_what_is_plugged_in_is_found_until_it_is_pulled_out(root: Path) -> None:
    usb = FakeUsb(root)
    usb.plug("2", "0403", "6001", serial="A50285BI", label="FT232R", tty="ttyUSB0")
    usb.plug("3", "1209", "0001", serial="77")
    assert [(each.identity, each.label) for each in usb_devices(usb.roots)] == [
        ("0403-6001-a50285bi", "FT232R"),
        ("1209-0001-port-0000-00-14-0-bus0-3", ""),
    ]
    (port,) = serial_ports(usb.roots)
    assert (port.identity, port.path) == ("0403-6001-a50285bi-if00", str(root / "dev/ttyUSB0"))
    assert port.links == (str(root / "dev/serial/by-id/usb-0403_6001_A50285BI-if00"),)
    usb.unplug("2")
    assert serial_ports(usb.roots) == [] and len(usb_devices(usb.roots)) == 1


def test_a_device_that_comes_back_has_another_number_and_the_same_identity(root: Path) -> None:
    usb = FakeUsb(root)
    usb.plug("2", "0403", "6001", serial="A50285BI")
    (before,) = usb_devices(usb.roots)
    usb.unplug("2")
    usb.plug("4", "0403", "6001", serial="A50285BI")
    (after,) = usb_devices(usb.roots)
    assert after.identity == before.identity
    assert after.node != before.node and Path(after.node).is_char_device() and not Path(before.node).exists()


def test_of_two_with_the_same_serial_number_the_last_has_the_link(root: Path) -> None:
    usb = FakeUsb(root)
    for port in ("1", "2"):
        usb.plug(port, "0403", "6001", serial="A50285BI", tty=f"ttyUSB{port}")
    assert [bool(port.links) for port in serial_ports(usb.roots)] == [False, True]


def test_without_the_right_to_make_device_nodes_there_are_links(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mknod(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "mknod", mknod)
    usb = FakeUsb(root)
    usb.plug("2", "0403", "6001", serial="A50285BI", tty="ttyUSB0")
    assert not usb.has_nodes and (root / "dev/ttyUSB0").is_char_device()
    usb.unplug("2")
    assert not (root / "dev/ttyUSB0").is_symlink()
