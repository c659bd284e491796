"""The machine that a node runs on, as its Node object describes it. What cannot be found out is left empty."""

import os
import platform
import socket
from pathlib import Path

from msgspec import Struct

from devlet.objects.values.quantity import Quantity

__all__ = ["LOOPBACK", "Host", "address", "read"]

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_FILE_MAX = 64 * 1024
LOOPBACK = "127.0.0.1"


class Host(Struct, frozen=True):
    """`memory` and `storage` are in bytes. `architecture` and `system` are the names that Go uses."""

    cpus: int
    memory: int
    storage: int
    boot_id: str = ""
    machine_id: str = ""
    system_uuid: str = ""
    kernel: str = ""
    image: str = ""
    system: str = "linux"
    architecture: str = "amd64"

    @property
    def capacity(self) -> dict[str, str]:
        """What pods can request, as quantities."""
        return {
            "cpu": str(Quantity.of(self.cpus)),
            "memory": str(Quantity.of(self.memory // 1024 * 1024, "BinarySI")),
            "ephemeral-storage": str(Quantity.of(self.storage // 1024 * 1024, "BinarySI")),
        }


def read(root: Path, *, slash: Path = Path("/")) -> Host:
    """Read what the machine has. `root` is on the file system that pods use; `slash` contains proc and etc. Blocks."""
    disk = os.statvfs(root)
    kernel = os.uname()
    return Host(
        cpus=len(os.sched_getaffinity(0)),
        memory=_memory(slash / "proc/meminfo"),
        storage=disk.f_blocks * disk.f_frsize,
        boot_id=_line(slash / "proc/sys/kernel/random/boot_id"),
        machine_id=_line(slash / "etc/machine-id"),
        system_uuid=_line(slash / "sys/class/dmi/id/product_uuid") or _line(slash / "etc/machine-id"),
        kernel=kernel.release,
        image=_os_name(slash / "etc/os-release"),
        system=kernel.sysname.lower(),
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
    )


def address() -> str:
    """Return the address of this machine on its default route, or the loopback address if there is none. No packet is
    sent."""
    for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):  # for documentation
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))
                found: str = probe.getsockname()[0]
                return found
        except OSError:
            continue
    return LOOPBACK


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_FILE_MAX)
    except OSError:
        return ""


def _line(path: Path) -> str:
    return _text(path).strip()


def _memory(path: Path) -> int:
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        words = value.split()
        if key == "MemTotal" and words and words[0].isdecimal():
            return int(words[0]) * 1024
    return 0


def _os_name(path: Path) -> str:
    for line in _text(path).splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return ""
