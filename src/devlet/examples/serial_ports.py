"""Serial ports, or USB devices, under names that stay, with hot-plug: as a DRA driver, or as a device plugin.

    python -m devlet.examples.serial_ports dra --only '0403-*'
    python -m devlet.examples.serial_ports device-plugin --list usb --only '0403-*' --resource example.com/ftdi

A stick is known by vendor, product and serial number (`0403-6001-a50285bi`), its port also by its place on the stick
(`…-if00`), and not by ttyUSB0, which may be another one after a reboot. A container gets the path that it has now in a
variable such as `DEVICE_0403_6001_A50285BI_IF00`. One program lists either ports or USB devices: an adapter is there a
moment before its port is, and would be given out as what it is not.
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
from devlet.sdk.attributes import shortened
from devlet.sdk.hotplug import changes
from devlet.sdk.identities import Identities
from devlet.sdk.usb import Roots, UsbDevice, serial_ports, usb_devices


class Attached(Struct, frozen=True):
    """What is plugged in. `path` may be another one tomorrow."""

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


class Bench:
    """Where devices are plugged in, and which of them are ours."""

    def __init__(self, roots: Roots = Roots(), only: str = "*", look: Finder = attached_ports) -> None:
        self.roots = roots
        self.only = only
        self.look = look
        self._identities = Identities()
        self._turn = Exclusion()

    def remember(self, directory: Path) -> None:
        """There, for who is started next, which stick has which name."""
        try:
            directory.mkdir(0o750, parents=True, exist_ok=True)
        except OSError as e:
            raise Unavailable(f"{directory} cannot be made: {e.strerror or e}") from e
        self._identities = Identities(directory / "identities.json")
        self._turn = Exclusion(directory / "identities.lock")

    async def lists(self) -> AsyncIterator[list[Attached]]:
        """All of them, and again whenever one came or went."""
        dev = self.roots.dev
        async for _ in changes(dev / "serial", dev / "bus/usb", subsystems=["usb", "tty"]):
            yield list((await self.now()).values())

    async def now(self) -> dict[str, Attached]:
        async with self._turn:
            found = await to_thread.run_sync(self.look, self.roots, self._identities)
        return {each.identity: each for each in found if fnmatchcase(each.identity, self.only)}

    async def find(self, identity: str) -> Attached:
        if (found := (await self.now()).get(identity)) is None:
            raise Unavailable(f"{identity} is not plugged in: plug it in again, or delete the pod")
        return found


class SerialDriver(DraDriver):
    """Serial ports, or USB devices, under names that stay, as a DRA driver."""

    name = "serial.example.com"

    def __init__(self, bench: Bench | None = None) -> None:
        self.bench = bench or Bench()

    async def setup(self, options: DraOptions) -> None:
        self.bench.remember(options.data(self.name))

    async def devices(self) -> AsyncIterator[Sequence[Device]]:
        async for found in self.bench.lists():
            yield [Device(each.identity, each.attributes) for each in found]

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        found = [(result, await self.bench.find(result.device)) for result in claim.results]
        return [Prepared(result, env=each.variable, devices=[each.path]) for result, each in found]

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--driver-name", metavar="NAME", default=self.name, help="for classes (%(default)s)")
        _add_bench(parser)

    def configure(self, arguments: Namespace) -> None:
        self.name, self.bench = arguments.driver_name, _bench(arguments)


class SerialPlugin(DevicePlugin):
    """Serial ports, or USB devices, under names that stay, as a device plugin. What is pulled out while it runs stays
    in the list as unhealthy, so that users see what their pod has lost."""

    resource = "example.com/serial"

    def __init__(self, bench: Bench | None = None) -> None:
        self.bench = bench or Bench()

    async def setup(self, options: PluginOptions) -> None:
        self.bench.remember(options.data(self.resource))

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        known: dict[str, PluginDevice] = {}
        async for found in self.bench.lists():
            known = {identity: PluginDevice(identity, UNHEALTHY) for identity in known}
            known |= {each.identity: PluginDevice(each.identity) for each in found}
            yield list(known.values())

    async def allocate(self, ids: Sequence[str]) -> Grant:
        found = [await self.bench.find(each) for each in ids]
        env = {name: path for each in found for name, path in each.variable.items()}
        return Grant(env=env, devices=[each.path for each in found])

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--resource", metavar="NAME", default=self.resource, help="what pods ask for (%(default)s)")
        _add_bench(parser)

    def configure(self, arguments: Namespace) -> None:
        self.resource, self.bench = arguments.resource, _bench(arguments)


def _add_bench(parser: ArgumentParser) -> None:
    parser.add_argument("--list", choices=FINDERS, default="serial", help="ports, or USB devices (%(default)s)")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="which identities, as in '0403-6001-*'")
    parser.add_argument("--sysfs", metavar="DIR", type=Path, default=Roots().sysfs, help="another /sys")
    parser.add_argument("--dev", metavar="DIR", type=Path, default=Roots().dev, help="another /dev")


def _bench(arguments: Namespace) -> Bench:
    return Bench(Roots(arguments.sysfs, arguments.dev), arguments.only, FINDERS[arguments.list])


if __name__ == "__main__":
    about = "Serial ports, or USB devices, under names that stay."
    kinds.main(about, {"dra": SerialDriver, "device-plugin": SerialPlugin})
