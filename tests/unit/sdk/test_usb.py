"""Trees as the kernel and udev make them, in a directory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.names import dns_label
from devlet.sdk.identities import Identities, slug
from devlet.sdk.usb import Roots, serial_ports, usb_devices

PCI = "devices/pci0000:00/0000:00:14.0"


class Machine:
    """`plug` makes what the kernel makes. Its buses begin with `first_bus`: with more than 1 if another controller was
    found first."""

    def __init__(self, root: Path, first_bus: int = 1) -> None:
        self.roots = Roots(root / "sys", root / "dev")
        self._first = first_bus
        self._devices = 1
        for index in range(2):
            self._device(f"{PCI}/usb{first_bus + index}", first_bus + index, "1d6b", "0002", {"bDeviceClass": "09"})

    def plug(self, way: str, vendor: str = "0403", product: str = "6001", *, bus: int = 0, **attributes: str) -> Path:
        """Where it is in sysfs: `way` is such as 1.2, port 2 of a hub in port 1."""
        number = self._first + bus
        steps = way.split(".")
        hubs = [f"{number}-{'.'.join(steps[:count])}" for count in range(1, len(steps) + 1)]
        return self._device(f"{PCI}/usb{number}/{'/'.join(hubs)}", number, vendor, product, attributes)

    def interface(self, device: Path, number: int = 0) -> Path:
        folder = device / f"{device.name}:1.{number}"
        folder.mkdir()
        self._link(self.roots.sysfs / "bus/usb/devices" / folder.name, folder)
        return folder

    def tty(self, interface: Path, name: str, port: int | None = None, by_id: str = "") -> None:
        """With a `port` as usb-serial makes it, without as cdc-acm does."""
        folder = (interface if port is None else interface / name) / "tty" / name
        folder.mkdir(parents=True)
        if port is not None:
            (interface / name / "port_number").write_text(f"{port}\n")
        self._link(self.roots.sysfs / "class/tty" / name, folder)
        self.node(name, by_id)

    def node(self, name: str, by_id: str = "") -> None:
        path = self.roots.dev / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        if by_id:
            self._link(self.roots.dev / "serial/by-id" / by_id, Path("../../") / name)

    def _device(self, path: str, bus: int, vendor: str, product: str, attributes: dict[str, str]) -> Path:
        self._devices += 1
        folder = self.roots.sysfs / path
        folder.mkdir(parents=True)
        numbers = {"busnum": str(bus), "devnum": str(self._devices), "bDeviceClass": "00"}
        for name, value in {**numbers, "idVendor": vendor, "idProduct": product, **attributes}.items():
            (folder / name).write_text(f"{value}\n")
        self._link(self.roots.sysfs / "bus/usb/devices" / folder.name, folder)
        return folder

    def _link(self, path: Path, target: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def identities(self) -> list[str]:
        return [device.identity for device in usb_devices(self.roots)]


@pytest.fixture
def machine(root: Path) -> Machine:
    return Machine(root)


def test_a_device_is_known_by_vendor_product_and_serial_number(machine: Machine) -> None:
    machine.plug("2", serial="A50285BI", manufacturer="FTDI", product_name="x")
    (device,) = usb_devices(machine.roots)
    assert device.identity == "0403-6001-a50285bi"
    assert (device.vendor, device.product, device.serial) == ("0403", "6001", "A50285BI")
    assert (device.name, device.port) == ("1-2", "0000:00:14.0/bus0/2")
    assert device.node == str(machine.roots.dev / "bus/usb/001/004")


def test_its_label_is_what_it_says_of_itself(machine: Machine) -> None:
    folder = machine.plug("2", manufacturer="FTDI")
    (folder / "product").write_text("FT232R USB UART\n")
    assert [device.label for device in usb_devices(machine.roots)] == ["FTDI FT232R USB UART"]


def test_it_keeps_its_identity_in_another_port(root: Path) -> None:
    here, there = Machine(root / "a"), Machine(root / "b", first_bus=3)
    here.plug("2", serial="A50285BI")
    there.plug("1.4", serial="A50285BI", bus=1)
    assert here.identities() == there.identities()


def test_identical_sticks_without_serial_number_are_known_by_their_ports(machine: Machine) -> None:
    machine.plug("1", bDeviceClass="09")
    machine.plug("1.2")
    machine.plug("1.3")
    assert machine.identities() == [f"0403-6001-port-0000-00-14-0-bus0-1-{port}" for port in (2, 3)]


def test_a_port_keeps_its_name_when_buses_get_other_numbers(root: Path) -> None:
    before, after = Machine(root / "a"), Machine(root / "b", first_bus=3)
    for each in (before, after):
        each.plug("2", bus=0)
        each.plug("2", bus=1)
    assert before.identities() == after.identities()
    assert len(set(before.identities())) == 2


def test_a_single_stick_without_serial_number_has_the_identity_that_it_has_among_others(machine: Machine) -> None:
    machine.plug("1")
    (alone,) = machine.identities()
    machine.plug("2")
    assert alone in machine.identities()


@pytest.mark.parametrize("serial", ["0123456789", "00000000", "X", "", "   "])
def test_a_serial_number_that_others_have_too_is_none(machine: Machine, serial: str) -> None:
    machine.plug("1", serial=serial)
    machine.plug("2", serial=serial)
    assert machine.identities() == [f"0403-6001-port-0000-00-14-0-bus0-{port}" for port in (1, 2)]


def test_a_stick_that_is_in_use_keeps_its_identity_when_its_double_comes_and_goes(machine: Machine) -> None:
    identities = Identities()

    def listed() -> dict[str, str]:
        return {device.name: device.identity for device in usb_devices(machine.roots, identities)}

    machine.plug("1", serial="A5002")
    assert listed() == {"1-1": "0403-6001-a5002"}
    machine.plug("2", serial="A5002")
    both = {"1-1": "0403-6001-a5002", "1-2": "0403-6001-port-0000-00-14-0-bus0-2"}
    assert listed() == both
    (machine.roots.sysfs / "bus/usb/devices/1-1").unlink()
    assert listed() == {"1-2": both["1-2"]}


def test_serial_numbers_that_differ_in_special_characters_are_distinguished(machine: Machine) -> None:
    machine.plug("1", serial="ab_1")
    machine.plug("2", serial="AB-1")
    assert len(set(machine.identities())) == 2


def test_hubs_and_interfaces_are_not_listed(machine: Machine) -> None:
    machine.plug("1", bDeviceClass="09")
    machine.interface(machine.plug("2", serial="S1"))
    assert machine.identities() == ["0403-6001-s1"]


def test_a_device_that_goes_while_it_is_looked_at_is_left_out(machine: Machine) -> None:
    (machine.plug("1", serial="S1") / "idVendor").unlink()
    (machine.plug("2", serial="S2") / "busnum").write_text("\n")
    machine.plug("3", serial="S3")
    (machine.roots.sysfs / "bus/usb/devices" / "9-9").symlink_to("nowhere")
    assert machine.identities() == ["0403-6001-s3"]


def test_a_machine_without_usb_has_none(root: Path) -> None:
    assert usb_devices(Roots(root, root)) == []
    assert serial_ports(Roots(root, root)) == []


def test_a_serial_port_is_known_by_its_device_and_interface(machine: Machine) -> None:
    device = machine.plug("2", serial="A50285BI")
    machine.tty(machine.interface(device), "ttyUSB0", 0, by_id="usb-FTDI_FT232R-if00-port0")
    (port,) = serial_ports(machine.roots)
    assert (port.identity, port.path) == ("0403-6001-a50285bi-if00", str(machine.roots.dev / "ttyUSB0"))
    assert port.usb == usb_devices(machine.roots)[0]
    assert port.links == (str(machine.roots.dev / "serial/by-id/usb-FTDI_FT232R-if00-port0"),)


def test_two_identical_adapters_share_one_link_and_still_are_two_ports(machine: Machine) -> None:
    """udev gives the link to whoever came last."""
    machine.tty(machine.interface(machine.plug("1", "1a86", "7523")), "ttyUSB0", 0)
    machine.tty(machine.interface(machine.plug("2", "1a86", "7523")), "ttyUSB1", 0, by_id="usb-1a86_USB_Serial-if00")
    ports = serial_ports(machine.roots)
    assert [port.identity for port in ports] == [f"1a86-7523-port-0000-00-14-0-bus0-{number}-if00" for number in (1, 2)]
    assert [Path(port.path).name for port in ports] == ["ttyUSB0", "ttyUSB1"]


def test_interfaces_and_ports_of_one_adapter_are_distinguished(machine: Machine) -> None:
    many = machine.plug("1", serial="S1")
    for number in range(2):
        machine.tty(machine.interface(many, number), f"ttyUSB{number}", 0)
    multi = machine.interface(machine.plug("2", serial="S2"))
    for number in range(2):
        machine.tty(multi, f"ttyUSB{number + 2}", number)
    machine.tty(machine.interface(machine.plug("3", serial="S3")), "ttyACM0")
    assert [(port.identity, Path(port.path).name) for port in serial_ports(machine.roots)] == [
        ("0403-6001-s1-if00", "ttyUSB0"),
        ("0403-6001-s1-if01", "ttyUSB1"),
        ("0403-6001-s2-if00", "ttyUSB2"),
        ("0403-6001-s2-if00-1", "ttyUSB3"),
        ("0403-6001-s3-if00", "ttyACM0"),
    ]


def test_other_ports_are_listed_if_udev_knows_them_by_id(machine: Machine) -> None:
    (machine.roots.sysfs / "class/tty/ttyS0").mkdir(parents=True)
    machine.node("ttyS0")
    machine.node("ttyAP0", by_id="Advantech_PCI_1234")
    (machine.roots.dev / "serial/by-id/gone").symlink_to("../../ttyUSB9")
    (port,) = serial_ports(machine.roots)
    assert (port.identity, port.path, port.usb) == ("advantech-pci-1234", str(machine.roots.dev / "ttyAP0"), None)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), min_size=1))
def test_an_identity_can_be_the_name_of_a_device_in_a_slice(parts: list[str]) -> None:
    assert dns_label(slug("0403", *parts)) == ()


def test_long_serial_numbers_with_a_common_prefix_are_distinguished(machine: Machine) -> None:
    for port in (1, 2):
        machine.plug(str(port), serial=f"{'a' * 100}{port}")
    assert all(len(identity) <= 63 and "port" not in identity for identity in machine.identities())
    assert len(set(machine.identities())) == 2
