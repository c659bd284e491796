"""USB devices and serial ports under names that stay: over reboots, and whichever was plugged in first.

Numbers such as ttyUSB0 or bus 1 device 4 are given out in the order in which devices appear. What stays is vendor,
product and serial number; a device without serial number, and one that comes when another with its number is there, is
known by the port that it is plugged into, and has another identity in another port. To keep the identity of a device
while it stays plugged in, whatever its doubles do, look with the same `Identities` each time.
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
    """Where the kernel and udev show devices. Paths in answers are below them."""

    sysfs: Path = Path("/sys")
    dev: Path = Path("/dev")


class UsbDevice(Struct, frozen=True):
    """`identity` has lower case letters, digits and dashes, at most 63, and is its own on this node. `name` is what
    sysfs calls it, such as 1-1.2; it may change with a reboot, `port` does not. `node` is for libusb. `vendor` and
    `product` are numbers of four hexadecimal digits, `label` is for people."""

    identity: str
    name: str
    vendor: str
    product: str
    serial: str
    port: str
    node: str
    label: str = ""


class SerialPort(Struct, frozen=True):
    """`path` is such as /dev/ttyUSB0; `links` are other names that udev has given it. Without `usb` it is known by the
    first of them."""

    identity: str
    path: str
    usb: UsbDevice | None = None
    links: tuple[str, ...] = ()


def usb_devices(roots: Roots = Roots(), identities: Identities | None = None) -> list[UsbDevice]:
    """All but hubs, by identity. One that goes while it is looked at is left out."""
    found = [device for folder in _entries(roots.sysfs / "bus/usb/devices") if (device := _usb(folder, roots))]
    made = (identities or Identities()).of({_key(each): _names(each) for each in found})
    return sorted((replace(each, identity=made[_key(each)]) for each in found), key=lambda device: device.identity)


def serial_ports(roots: Roots = Roots(), identities: Identities | None = None) -> list[SerialPort]:
    """Those on USB, and others that udev has links for in /dev/serial/by-id. By identity."""
    links = _links(roots.dev / "serial/by-id")  # before the devices: what has a link is in sysfs already
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
    """Interfaces have no idVendor."""
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
    """Some makers give all devices a row of the same digit."""
    return "" if len(set(text)) == 1 else text


def _port(folder: Path) -> str:
    """`0000:00:14.0/bus0/1.2`: the controller, which of its buses, the way from there. Numbers of buses are given out
    in the order in which controllers are found; those of one controller keep theirs."""
    hub = next((each for each in folder.parents if _NUMBERED.fullmatch(each.name)), None)
    if hub is None:
        return folder.name
    return f"{hub.parent.name}/bus{_buses(hub.parent).index(hub.name)}/{folder.name.partition('-')[2]}"


def _buses(controller: Path) -> list[str]:
    numbers = [int(match[1]) for each in controller.iterdir() if (match := _NUMBERED.fullmatch(each.name))]
    return [f"usb{number}" for number in sorted(numbers)]


def _key(device: UsbDevice) -> str:
    """Whatever is plugged in gets the next number, so that one that was replaced is another one."""
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
    """Which one of its device it is: an adapter can have several interfaces, and an interface several ports."""
    interface = next((match[1] for each in place.parents if (match := _INTERFACE.fullmatch(each.name))), "0")
    yield f"if{int(interface):02}"
    if (port := _optional(place.parents[1] / "port_number")) not in ("", "0"):
        yield port


def _links(folder: Path) -> dict[str, list[str]]:
    """By the device that they lead to."""
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
