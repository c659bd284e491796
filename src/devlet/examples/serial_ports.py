"""Serial ports or USB devices with stable names and hot-plug, as a DRA driver or as a device plugin.

    python -m devlet.examples.serial_ports dra --only '0403-*'
    python -m devlet.examples.serial_ports device-plugin --list usb --only '0403-*' --resource example.com/ftdi

A USB stick is identified by vendor, product and serial number (`0403-6001-a50285bi`), and a port also by its position
on the stick (`…-if00`); ttyUSB0 may be a different stick after a reboot. A container gets the current path in a
variable such as `DEVICE_0403_6001_A50285BI_IF00`. A program lists either ports or USB devices: an adapter appears
shortly before its port, and would otherwise be allocated as a USB device.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from anyio import to_thread
from msgspec import Struct

from devlet.errors import Unavailable
from devlet.examples import kinds
from devlet.sdk import (
    UNHEALTHY,
    Claim,
    Device,
    DevicePlugin,
    DraDriver,
    DraOptions,
    Exclusion,
    Grant,
    PluginDevice,
    PluginOptions,
    Prepared,
)
from devlet.sdk.hotplug import changes
from devlet.sdk.identities import Identities
from devlet.sdk.usb import Roots, UsbDevice, serial_ports, usb_devices
from devlet.sdk.values import shortened


class Attached(Struct, frozen=True):
    """A device that is plugged in. Its path can change, but its identity does not."""

    identity: str
    path: str
    usb: UsbDevice | None

    @property
    def variable(self) -> dict[str, str]:
        return {f"DEVICE_{self.identity.upper().replace('-', '_')}": self.path}

    @property
    def attributes(self) -> dict[str, str]:
        if self.usb is None:
            return {}
        usb = self.usb
        texts = {"vendor": usb.vendor, "product": usb.product, "serial": usb.serial, "port": usb.port}
        return {name: shortened(text) for name, text in {**texts, "label": usb.label}.items() if text}


def attached_ports(roots: Roots, identities: Identities) -> list[Attached]:
    return [Attached(port.identity, port.path, port.usb) for port in serial_ports(roots, identities)]


def attached_usb(roots: Roots, identities: Identities) -> list[Attached]:
    return [Attached(device.identity, device.node, device) for device in usb_devices(roots, identities)]


Finder = Callable[[Roots, Identities], Sequence[Attached]]
FINDERS: Mapping[str, Finder] = {"serial": attached_ports, "usb": attached_usb}


class Attachments:
    """The devices that are plugged in and that this driver offers."""

    def __init__(self, roots: Roots = Roots(), only: str = "*", look: Finder = attached_ports) -> None:
        self.roots = roots
        self.only = only
        self.look = look
        self._identities = Identities()
        self._exclusion = Exclusion()

    def remember(self, directory: Path) -> None:
        """Store the names of the sticks in this directory, so that they survive a restart of the driver."""
        try:
            directory.mkdir(0o750, parents=True, exist_ok=True)
        except OSError as e:
            raise Unavailable(f"{directory} cannot be created: {e.strerror or e}") from e
        self._identities = Identities(directory / "identities.json")
        self._exclusion = Exclusion(directory / "identities.lock")

    async def lists(self) -> AsyncIterator[list[Attached]]:
        """Yield all devices, and again whenever one was plugged in or unplugged."""
        dev = self.roots.dev
        async for _ in changes(dev / "serial", dev / "bus/usb", subsystems=["usb", "tty"]):
            yield list((await self.now()).values())

    async def now(self) -> dict[str, Attached]:
        async with self._exclusion:
            found = await to_thread.run_sync(self.look, self.roots, self._identities)
        return {each.identity: each for each in found if fnmatchcase(each.identity, self.only)}

    async def find(self, identity: str) -> Attached:
        if (found := (await self.now()).get(identity)) is None:
            raise Unavailable(f"{identity} is not plugged in: plug it in again, or delete the pod")
        return found


class SerialDriver(DraDriver):
    """Serial ports or USB devices with stable names, as a DRA driver."""

    name = "serial.example.com"

    def __init__(self, attachments: Attachments | None = None) -> None:
        self.attachments = attachments or Attachments()

    async def setup(self, options: DraOptions) -> None:
        self.attachments.remember(options.data(self.name))

    async def devices(self) -> AsyncIterator[Sequence[Device]]:
        async for found in self.attachments.lists():
            yield [Device(each.identity, each.attributes) for each in found]

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        found = [(result, await self.attachments.find(result.device)) for result in claim.results]
        return [Prepared(result, env=each.variable, devices=[each.path]) for result, each in found]

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--driver-name",
            metavar="NAME",
            default=self.name,
            help="name of the driver, which device classes select (%(default)s)",
        )
        _add_attachments(parser)

    def configure(self, arguments: Namespace) -> None:
        self.name, self.attachments = arguments.driver_name, _attachments(arguments)


class SerialPlugin(DevicePlugin):
    """Serial ports or USB devices with stable names, as a device plugin.

    A device that is unplugged stays in the list as unhealthy, so that users see what their pod has lost."""

    resource = "example.com/serial"

    def __init__(self, attachments: Attachments | None = None) -> None:
        self.attachments = attachments or Attachments()

    async def setup(self, options: PluginOptions) -> None:
        self.attachments.remember(options.data(self.resource))

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        known: dict[str, PluginDevice] = {}
        async for found in self.attachments.lists():
            known = {identity: PluginDevice(identity, UNHEALTHY) for identity in known}
            known |= {each.identity: PluginDevice(each.identity) for each in found}
            yield list(known.values())

    async def allocate(self, ids: Sequence[str]) -> Grant:
        found = [await self.attachments.find(each) for each in ids]
        env = {name: path for each in found for name, path in each.variable.items()}
        return Grant(env=env, devices=[each.path for each in found])

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--resource", metavar="NAME", default=self.resource, help="resource that pods ask for (%(default)s)"
        )
        _add_attachments(parser)

    def configure(self, arguments: Namespace) -> None:
        self.resource, self.attachments = arguments.resource, _attachments(arguments)


def _add_attachments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--list", choices=FINDERS, default="serial", help="list serial ports or USB devices (%(default)s)"
    )
    parser.add_argument(
        "--only", metavar="PATTERN", default="*", help="list only these identities, as in '0403-6001-*'"
    )
    parser.add_argument(
        "--sysfs", metavar="DIR", type=Path, default=Roots().sysfs, help="directory to use instead of /sys"
    )
    parser.add_argument("--dev", metavar="DIR", type=Path, default=Roots().dev, help="directory to use instead of /dev")


def _attachments(arguments: Namespace) -> Attachments:
    return Attachments(Roots(arguments.sysfs, arguments.dev), arguments.only, FINDERS[arguments.list])


if __name__ == "__main__":
    about = "Offer serial ports or USB devices with stable names."
    kinds.main(about, {"dra": SerialDriver, "device-plugin": SerialPlugin})
