"""List USB devices and serial ports under names that survive reboots and do not depend on the order of plugging in.

Numbers such as ttyUSB0 or bus 1 device 4 depend on the order in which devices appear. A device is identified by vendor,
product and serial number instead. A device without a serial number, or with one that another device has, is identified
by its port, so it has another identity in another port. To keep the identity of a device while it stays plugged in,
even if such a double is added, use the same `Identities` each time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from devlet.sdk.identities import Identities, slug

__all__ = ["Roots", "SerialPort", "UsbDevice", "serial_ports", "usb_devices"]

_HUB: Final = "09"  # bDeviceClass
_NUMBERED = re.compile("usb([0-9]+)")
_INTERFACE = re.compile(r"[0-9]+-[0-9.]+:[0-9]+\.([0-9]+)")


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the kernel and udev list devices. Returned paths are below these directories."""

    sysfs: Path = Path("/sys")
    dev: Path = Path("/dev")


class UsbDevice(Struct, frozen=True):
    """`identity` has at most 63 lower-case letters, digits and dashes, and is unique on the node. `name` is the name in
    sysfs, such as 1-1.2; a reboot may change it, but not `port`. `node` is the device file for libusb. `vendor` and
    `product` have four hexadecimal digits each. `label` is for people."""

    identity: str
    name: str
    vendor: str
    product: str
    serial: str
    port: str
    node: str
    label: str = ""


class SerialPort(Struct, frozen=True):
    """`path` is for example /dev/ttyUSB0, and `links` are links of udev to it. Without `usb` the port is identified by
    its first link."""

    identity: str
    path: str
    usb: UsbDevice | None = None
    links: tuple[str, ...] = ()


def usb_devices(roots: Roots = Roots(), identities: Identities | None = None) -> list[UsbDevice]:
    """Return all devices but hubs, sorted by identity, without those that are removed meanwhile."""
    found = [device for folder in _entries(roots.sysfs / "bus/usb/devices") if (device := _usb(folder, roots))]
    made = (identities or Identities()).of({_key(each): _names(each) for each in found})
    return sorted((replace(each, identity=made[_key(each)]) for each in found), key=lambda device: device.identity)


def serial_ports(roots: Roots = Roots(), identities: Identities | None = None) -> list[SerialPort]:
    """Return the ports on USB, and those with links in /dev/serial/by-id, sorted by identity."""
    links = _links(roots.dev / "serial/by-id")  # before the devices: a port with a link is in sysfs already
    devices = {device.name: device for device in usb_devices(roots, identities)}
    ports = {}
    for folder in _entries(roots.sysfs / "class/tty"):
        if port := _on_usb(folder, devices, links, roots):
            ports[port.path] = port
    for path, names in links.items():
        if path not in ports:
            ports[path] = SerialPort(slug(Path(names[0]).name), path, None, tuple(names))
    return sorted(ports.values(), key=lambda port: port.identity)


def _usb(folder: Path, roots: Roots) -> UsbDevice | None:
    """Return a device; None if the directory is that of a hub or an interface, which has no idVendor."""
    try:
        if _read(folder / "bDeviceClass") == _HUB:
            return None
        bus, number = int(_read(folder / "busnum")), int(_read(folder / "devnum"))
        return UsbDevice(
            identity="",
            name=folder.name,
            vendor=_read(folder / "idVendor"),
            product=_read(folder / "idProduct"),
            serial=_serial(_optional(folder / "serial")),
            port=_port(folder.resolve()),
            node=str(roots.dev / f"bus/usb/{bus:03}/{number:03}"),
            label=f"{_optional(folder / 'manufacturer')} {_optional(folder / 'product')}".strip(),
        )
    except (OSError, ValueError):
        return None


def _serial(text: str) -> str:
    """Return a serial number. Some vendors give all devices the same digit repeated, which does not count."""
    return "" if len(set(text)) == 1 else text


def _port(folder: Path) -> str:
    """Return a port as controller, index of its bus, and the path from there: `0000:00:14.0/bus0/1.2`.

    Bus numbers depend on the order in which controllers are found, but the order of one controller's buses is fixed."""
    hub = next((each for each in folder.parents if _NUMBERED.fullmatch(each.name)), None)
    if hub is None:
        return folder.name
    return f"{hub.parent.name}/bus{_buses(hub.parent).index(hub.name)}/{folder.name.partition('-')[2]}"


def _buses(controller: Path) -> list[str]:
    numbers = [int(match[1]) for each in controller.iterdir() if (match := _NUMBERED.fullmatch(each.name))]
    return [f"usb{number}" for number in sorted(numbers)]


def _key(device: UsbDevice) -> str:
    """Return a unique key. Each device that is plugged in gets the next number, so a replaced device has another
    key."""
    return f"{device.name} {Path(device.node).name} {device.vendor}:{device.product} {device.serial}"


def _names(device: UsbDevice) -> Sequence[str]:
    kind, port = (device.vendor, device.product), slug(device.vendor, device.product, "port", device.port)
    return [slug(*kind, device.serial), port] if device.serial else [port]


def _on_usb(
    folder: Path, devices: Mapping[str, UsbDevice], links: Mapping[str, list[str]], roots: Roots
) -> SerialPort | None:
    place = folder.resolve()
    device = next((devices[each.name] for each in place.parents if each.name in devices), None)
    if device is None:
        return None
    path = str(roots.dev / folder.name)
    return SerialPort(slug(device.identity, *_socket(place)), path, device, tuple(links.get(path, ())))


def _socket(place: Path) -> Iterator[str]:
    """Yield what distinguishes the ports of a device: its interface, and its number if an interface has several."""
    interface = next((match[1] for each in place.parents if (match := _INTERFACE.fullmatch(each.name))), "0")
    yield f"if{int(interface):02}"
    if (port := _optional(place.parents[1] / "port_number")) not in ("", "0"):
        yield port


def _links(folder: Path) -> dict[str, list[str]]:
    """Return the links by the device to which they lead."""
    found: dict[str, list[str]] = {}
    for link in _entries(folder):
        if link.is_symlink() and link.exists():
            found.setdefault(str(folder.parents[1] / link.readlink().name), []).append(str(link))
    return found


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    return path.read_text(errors="replace").strip()


def _optional(path: Path) -> str:
    try:
        return _read(path)
    except OSError:
        return ""
