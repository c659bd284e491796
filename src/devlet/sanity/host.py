"""Facts about the machine: NUMA nodes, what a process uses, and the files that a container is to get."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Usage", "device_problem", "mount_problem", "numa_nodes", "usage"]

_PERMISSIONS = set("rwm")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process uses; memory in bytes."""

    files: int
    threads: int
    memory: int


def numa_nodes(system: Path = Path("/sys/devices/system/node")) -> frozenset[int]:
    """Return the NUMA nodes that are online; empty if the kernel does not report them."""
    try:
        text = (system / "online").read_text().strip()
    except OSError:
        return frozenset()
    ranges = [part.partition("-") for part in text.split(",") if part]
    return frozenset(node for first, _, last in ranges for node in range(int(first), int(last or first) + 1))


def usage(pid: int, proc: Path = Path("/proc")) -> Usage:
    """Return what a process uses. Raises OSError if it does not exist or may not be inspected."""
    folder = proc / str(pid)
    pages = int((folder / "statm").read_text().split()[1])
    return Usage(
        files=len(os.listdir(folder / "fd")),
        threads=len(os.listdir(folder / "task")),
        memory=pages * os.sysconf("SC_PAGE_SIZE"),
    )


def device_problem(host_path: str, container_path: str, permissions: str) -> str:
    """Return why a container would not get this device, or an empty string. A directory stands for all its devices."""
    if problem := _paths(host_path, container_path):
        return problem
    if not permissions or set(permissions) - _PERMISSIONS:
        return f"{host_path}: the permissions are {permissions!r}, expected some of r, w and m"
    mode = os.stat(host_path).st_mode
    if not (stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISDIR(mode)):
        return f"{host_path} is not a device node"
    return ""


def mount_problem(host_path: str, container_path: str) -> str:
    """Return why a container would not get this mount, or an empty string."""
    return _paths(host_path, container_path)


def _paths(host_path: str, container_path: str) -> str:
    if not host_path.startswith("/"):
        return f"the host path {host_path!r} is not absolute"
    if not container_path.startswith("/"):
        return f"{host_path}: the container path {container_path!r} is not absolute"
    if ".." in Path(container_path).parts:
        return f"{host_path}: the container path {container_path!r} contains .."
    return "" if os.path.exists(host_path) else f"{host_path} does not exist on this host"
