"""What a device node of the host is: type, numbers, mode, owner. The one place where nodes are looked at."""

import os
import stat
from collections.abc import Callable, Iterator

from msgspec import Struct

from devlet.errors import InvalidInput, NotFound

__all__ = ["Find", "HostNode", "Look", "find", "look"]

_MAX_NODES = 4096  # below one directory
_PRIVATE = {"pts", "shm", "fd", "mqueue", ".lxc", ".lxd-mounts", ".udev"}  # directories that engines leave out
_CONSOLE = "console"
_TYPES = {stat.S_IFBLK: "b", stat.S_IFCHR: "c", stat.S_IFIFO: "p"}


class HostNode(Struct, frozen=True, gc=False):
    """`mode` are the permission bits."""

    type: str
    major: int
    minor: int
    mode: int
    uid: int = 0
    gid: int = 0


Look = Callable[[str], HostNode]
Find = Callable[[str], list[tuple[str, str]]]


def look(path: str) -> HostNode:
    """NotFound if there is nothing, or no device node. A link is none: runtimes do not follow those of CDI specs."""
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
    """What engines give for a path that is no CDI spec's: the name below it, and the path of the node.

    A link is followed; then a directory stands for all device nodes in it, however deep, but not for links and pipes.
    NotFound if there is nothing, InvalidInput if there is too much."""
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
