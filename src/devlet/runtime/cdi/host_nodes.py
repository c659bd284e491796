"""Read the device nodes of the host: type, numbers, mode, owner. No other module accesses device nodes."""

import os
import stat
from collections.abc import Callable, Iterator

from msgspec import Struct

from devlet.errors import InvalidInput, NotFound

__all__ = ["Find", "HostNode", "Look", "find", "look"]

_MAX_NODES = 4096  # below one directory
_PRIVATE = {"pts", "shm", "fd", "mqueue", ".lxc", ".lxd-mounts", ".udev"}  # directories that engines skip
_CONSOLE = "console"
_TYPES = {stat.S_IFBLK: "b", stat.S_IFCHR: "c", stat.S_IFIFO: "p"}


class HostNode(Struct, frozen=True, gc=False):
    """A device node. `mode` are the permission bits."""

    type: str
    major: int
    minor: int
    mode: int
    uid: int = 0
    gid: int = 0


Look = Callable[[str], HostNode]
Find = Callable[[str], list[tuple[str, str]]]


def look(path: str) -> HostNode:
    """Return the device node at the path. Raise NotFound if there is none. Links do not count: runtimes do not follow
    those in CDI specs."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError) as e:
        raise NotFound(f"{path}: {getattr(e, 'strerror', None) or e}") from e
    kind = _TYPES.get(stat.S_IFMT(status.st_mode))
    if kind is None:
        raise NotFound(f"{path}: not a device node")
    major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
    return HostNode(kind, major, minor, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)


def find(path: str) -> list[tuple[str, str]]:
    """Return the nodes that engines add for a path outside of CDI specs: the name below the path, and the node's path.

    A link is followed. A directory stands for all device nodes below it, but not for links and pipes. Raise NotFound if
    there is nothing at the path, InvalidInput if there are too many nodes."""
    try:
        real = os.path.realpath(path, strict=True)
    except (OSError, ValueError) as e:
        raise NotFound(f"{path}: {getattr(e, 'strerror', None) or e}") from e
    if not os.path.isdir(real):
        return [("", real)]
    return sorted((os.path.relpath(node, real), node) for node in _nodes(real))


def _nodes(directory: str) -> Iterator[str]:
    count = 0
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name not in _PRIVATE]
        for name in files:
            node = os.path.join(folder, name)
            if name == _CONSOLE or not _is_device(node):
                continue
            if (count := count + 1) > _MAX_NODES:
                raise InvalidInput(f"{directory}: more than {_MAX_NODES} device nodes")
            yield node


def _is_device(path: str) -> bool:
    try:
        return look(path).type in ("b", "c")
    except NotFound:
        return False
