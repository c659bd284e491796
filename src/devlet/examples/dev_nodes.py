"""Files in /dev for containers, as a DRA driver or as a device plugin.

    python -m devlet.examples.dev_nodes dra --device kvm=/dev/kvm --device tun=/dev/net/tun --users 10
    python -m devlet.examples.dev_nodes device-plugin --resource example.com/kvm --device kvm=/dev/kvm --users 10

A missing file is offered as soon as it appears. `--users` is the number of containers that can have a file at the same
time. A device plugin offers a device for each user (`kvm-0` … `kvm-9`). A DRA driver offers a capacity of which each
claim takes one.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from msgspec import Struct

from devlet.errors import InvalidInput, NotFound
from devlet.examples import kinds
from devlet.objects.names import dns_label
from devlet.sdk import (
    HEALTHY,
    UNHEALTHY,
    Capacity,
    Claim,
    Device,
    DeviceNode,
    DevicePlugin,
    DraDriver,
    Grant,
    PluginDevice,
    Prepared,
)
from devlet.sdk.hotplug import changes
from devlet.sdk.values import shortened


class File(Struct, frozen=True):
    name: str
    path: Path
    permissions: str = "rw"


def parse(text: str) -> File:
    """Parse NAME=PATH or NAME=PATH:PERMISSIONS."""
    name, equals, rest = text.partition("=")
    path, colon, permissions = rest.partition(":")
    if not equals or not path.startswith("/") or (colon and not permissions) or set(permissions) - set("rwm"):
        raise InvalidInput(f"--device {text}: expected NAME=/dev/PATH or NAME=/dev/PATH:rw")
    if problems := dns_label(name):
        raise InvalidInput(f"--device {text}: {name!r} cannot be a name: {problems[0]}")
    return File(name, Path(path), permissions or "rw")


class Files:
    """Files by name, each for a number of users at the same time."""

    def __init__(self, files: Sequence[File] = (), users: int = 1) -> None:
        self.all = {file.name: file for file in files}
        self.users = users

    def node(self, name: str) -> DeviceNode:
        """Return the file for a container. An older claim may name a file that the flags no longer contain."""
        if (file := self.all.get(name)) is None:
            raise NotFound(f"{name} is no longer one of the files of this driver: see its --device flags")
        if not file.path.exists():
            raise NotFound(f"{name}: {file.path} does not exist")
        return DeviceNode(str(file.path), permissions=file.permissions)

    async def checks(self) -> AsyncIterator[None]:
        """Yield whenever a file may have appeared or disappeared."""
        names = {file.path.name for file in self.all.values()}
        directories = sorted({file.path.parent for file in self.all.values()})
        async for _ in changes(*directories, skip=lambda name: name not in names):
            yield


class NodeDriver(DraDriver):
    """Files in /dev, as a DRA driver."""

    name = "dev.example.com"

    def __init__(self, files: Files | None = None) -> None:
        self.files = files or Files()

    async def devices(self) -> AsyncIterator[Sequence[Device]]:
        async for _ in self.files.checks():
            yield [self._device(file) for file in self.files.all.values() if file.path.exists()]

    def _device(self, file: File) -> Device:
        device = Device(file.name, {"path": shortened(str(file.path))})
        if self.files.users == 1:
            return device
        users = Capacity(self.files.users, {"default": "1", "validValues": ["1"]})
        return Device(file.name, device.attributes, {"users": users}, allow_multiple_allocations=True)

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        return [Prepared(result, devices=[self.files.node(result.device)]) for result in claim.results]

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--driver-name",
            metavar="NAME",
            default=self.name,
            help="name of the driver, which device classes select (%(default)s)",
        )
        _add_files(parser)

    def configure(self, arguments: Namespace) -> None:
        self.name, self.files = arguments.driver_name, _files(arguments)


class NodePlugin(DevicePlugin):
    """Files in /dev, as a device plugin. All files are devices of one resource, so a pod gets any of them."""

    resource = "example.com/dev"

    def __init__(self, files: Files | None = None) -> None:
        self.files = files or Files()

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        async for _ in self.files.checks():
            yield [
                PluginDevice(f"{file.name}-{user}", HEALTHY if file.path.exists() else UNHEALTHY)
                for file in self.files.all.values()
                for user in range(self.files.users)
            ]

    async def allocate(self, ids: Sequence[str]) -> Grant:
        names = dict.fromkeys(id.rpartition("-")[0] for id in ids)
        return Grant(devices=[self.files.node(name) for name in names])

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--resource", metavar="NAME", default=self.resource, help="resource that pods ask for (%(default)s)"
        )
        _add_files(parser)

    def configure(self, arguments: Namespace) -> None:
        self.resource, self.files = arguments.resource, _files(arguments)


def _add_files(parser: ArgumentParser) -> None:
    form = "NAME=PATH[:rwm]"
    parser.add_argument(
        "--device", metavar=form, dest="devices", action="append", default=[], help="file to offer; may be repeated"
    )
    parser.add_argument(
        "--users", metavar="N", type=int, default=1, help="users of each file at the same time (%(default)s)"
    )


def _files(arguments: Namespace) -> Files:
    files = [parse(text) for text in arguments.devices]
    if not files or len({file.name for file in files}) < len(files):
        raise InvalidInput("--device is required, and each needs a different name")
    if arguments.users < 1:
        raise InvalidInput(f"--users {arguments.users}: must be at least 1")
    return Files(files, arguments.users)


if __name__ == "__main__":
    kinds.main("Offer files in /dev to containers.", {"dra": NodeDriver, "device-plugin": NodePlugin})
