"""USB devices and serial adapters in directories that look like /sys and /dev, to be plugged in and pulled out.

    usb = FakeUsb(directory)
    usb.plug("2", "0403", "6001", serial="A50285BI", tty="ttyUSB0")     # port 2
    usb.unplug("2")

Drivers that take `Roots` see them as they see real ones. Device files are that of /dev/null under other names. Who may
not make such files gets links to it (`has_nodes` is False then), and no container can be described that has them.
"""

import os
import shutil
import stat
from pathlib import Path

from devlet.sdk.usb import Roots

__all__ = ["FakeUsb"]

NULL = os.makedev(1, 3)
CONTROLLER = "devices/pci0000:00/0000:00:14.0"


class FakeUsb:
    """One controller with one bus."""

    def __init__(self, directory: Path) -> None:
        self.roots = Roots(directory / "sys", directory / "dev")
        self.has_nodes = True
        self._last = 1  # the numbers that devices get, one after the other
        (self.roots.dev / "serial/by-id").mkdir(parents=True)
        self._write(self.roots.sysfs / CONTROLLER / "usb1", "1d6b", "0002", {"bDeviceClass": "09"})

    def plug(self, port: str, vendor: str, product: str, *, serial: str = "", label: str = "", tty: str = "") -> None:
        """With `tty` it is a serial adapter whose port has that name."""
        folder = self.roots.sysfs / CONTROLLER / "usb1" / f"1-{port}"
        more = {"serial": serial, "product": label}
        number = self._write(folder, vendor, product, {name: text for name, text in more.items() if text})
        if tty:
            place = folder / f"1-{port}:1.0" / tty / "tty" / tty
            place.mkdir(parents=True)
            _link(self.roots.sysfs / "class/tty" / tty, place)
            self._node(tty)
            _link(self.roots.dev / f"serial/by-id/usb-{vendor}_{product}_{serial}-if00", Path(f"../../{tty}"))
        self._node(f"bus/usb/001/{number:03}")

    def unplug(self, port: str) -> None:
        """Files in /dev go last, as the kernel does it."""
        folder = self.roots.sysfs / CONTROLLER / "usb1" / f"1-{port}"
        number = int((folder / "devnum").read_text())
        ttys = [each.name for each in (self.roots.sysfs / "class/tty").glob("*") if folder in each.resolve().parents]
        shutil.rmtree(folder)
        (self.roots.sysfs / "bus/usb/devices" / folder.name).unlink()
        for tty in ttys:
            (self.roots.sysfs / "class/tty" / tty).unlink()
            for link in (self.roots.dev / "serial/by-id").iterdir():
                if link.readlink().name == tty:
                    link.unlink()
            (self.roots.dev / tty).unlink()
        (self.roots.dev / f"bus/usb/001/{number:03}").unlink()

    def _node(self, name: str) -> None:
        path = self.roots.dev / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, NULL)
        except PermissionError:
            self.has_nodes = False
            path.symlink_to("/dev/null")

    def _write(self, folder: Path, vendor: str, product: str, more: dict[str, str]) -> int:
        number, self._last = self._last, self._last + 1
        folder.mkdir(parents=True)
        numbers = {"busnum": "1", "devnum": str(number), "bDeviceClass": "00", "idVendor": vendor, "idProduct": product}
        for name, text in {**numbers, **more}.items():
            (folder / name).write_text(f"{text}\n")
        _link(self.roots.sysfs / "bus/usb/devices" / folder.name, folder)
        return number


def _link(path: Path, target: Path) -> None:
    """Of doubles, who comes last has the link, as udev does it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
