"""USB devices and serial ports under names that stay: over reboots, and whichever was plugged in first.

Numbers such as ttyUSB0 or bus 1 device 4 are given out in the order in which devices appear. What stays is vendor,
product and serial number; a device without serial number, and one whose number others have too, is known by the port
that it is plugged into. So such a device has another identity in another port, and the one that was alone with its
number has another one when its double appears.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["Roots", "SerialPort", "UsbDevice", "serial_ports", "usb_devices"]

_HUB: Final = "09"  # bDeviceClass
_LONGEST: Final = 63  # characters, for devices of plugins and for names of devices in slices
_HASH = 8  # characters
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


def usb_devices(roots: Roots = Roots()) -> list[UsbDevice]:
    """All but hubs, by identity. One that goes while it is looked at is left out."""
    found = [device for folder in _entries(roots.sysfs / "bus/usb/devices") if (device := _usb(folder, roots))]
    return sorted(_identified(found), key=lambda device: device.identity)


def serial_ports(roots: Roots = Roots()) -> list[SerialPort]:
    """Those on USB, and others that udev has links for in /dev/serial/by-id. By identity."""
    links = _links(roots.dev / "serial/by-id")  # before the devices: what has a link is in sysfs already
    devices = {device.name: device for device in usb_devices(roots)}
    ports = {}
    for folder in _entries(roots.sysfs / "class/tty"):
        if port := _on_usb(folder, devices, links, roots):
            ports[port.path] = port
    for path, names in links.items():
        if path not in ports:
            ports[path] = SerialPort(_slug(Path(names[0]).name), path, None, tuple(names))
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


def _identified(devices: Iterable[UsbDevice]) -> Iterator[UsbDevice]:
    by_serial = [(each, _slug(each.vendor, each.product, each.serial)) for each in devices]
    alike = Counter(name for _, name in by_serial)
    for each, name in by_serial:
        known = each.serial and alike[name] == 1
        yield replace(each, identity=name if known else _slug(each.vendor, each.product, "port", each.port))


def _on_usb(
    folder: Path, devices: Mapping[str, UsbDevice], links: Mapping[str, list[str]], roots: Roots
) -> SerialPort | None:
    place = folder.resolve()
    device = next((devices[each.name] for each in place.parents if each.name in devices), None)
    if device is None:
        return None
    path = str(roots.dev / folder.name)
    return SerialPort(_slug(device.identity, *_socket(place)), path, device, tuple(links.get(path, ())))


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


def _slug(*parts: str) -> str:
    text = re.sub("[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
    if len(text) <= _LONGEST:
        return text
    digest = sha256(text.encode()).hexdigest()[:_HASH]
    return f"{text[: _LONGEST - _HASH - 1].rstrip('-')}-{digest}"


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
