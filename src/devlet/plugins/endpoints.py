"""Find and check the socket of a plugin that announces an absolute path. It must be below our root.

The path is in the plugin's own mount namespace. Under `devlet exec`, /var/lib/kubelet is our root for the plugin, but
for us it belongs to a kubelet on this host, perhaps with a driver of the same name. In a container, the path may exist
only on the host. So a path that leads below our root is used unchanged, as a kubelet would; any other is looked up in
the mounts of the process that announced it.

A driver may register before its service listens, so nothing has to exist at the path. What exists must be a socket of
root or of our own user; otherwise any user of the machine could take over a driver's name.
"""

import os
import stat
from pathlib import Path

from devlet.errors import InvalidInput
from devlet.kit import mount_table, socket_paths
from devlet.kit.kept_files import kind
from devlet.kit.mount_table import MountTable

__all__ = ["locate", "mapped", "outside", "refusal"]

_KUBELET_ROOT = Path("/var/lib/kubelet")


def locate(announced: Path, root: Path, pid: int | None) -> Path:
    """Return the path of the endpoint for us. `pid` is the process that announced it, None if it is not known.
    `InvalidInput` if the endpoint is not below the root."""
    ours = mount_table.resolved(root)
    if mount_table.resolved(announced).is_relative_to(ours):
        return announced
    peer = None if pid is None else mount_table.read(pid)
    theirs = mount_table.resolved(announced, pid)
    if peer is None:  # of another PID namespace, or not to be looked at: it can only mean the kubelet's directory
        found = ours / announced.relative_to(_KUBELET_ROOT) if announced.is_relative_to(_KUBELET_ROOT) else None
    else:
        found = mapped(theirs, peer, ours, mount_table.read() or MountTable(()))
    if found is None or outside(found, root):
        raise InvalidInput(
            f"the endpoint {announced} is not below devlet's root {root}, and devlet calls no socket elsewhere;"
            f" start the plugin with `devlet exec --root {root} -- PROGRAM`, or have it serve below {root}"
        )
    return root / found.relative_to(ours)


def mapped(path: Path, theirs: MountTable, root: Path, ours: MountTable) -> Path | None:
    """Return the path below `root` that is for us what `path` is for them, or None if there is none."""
    place = theirs.place(path)
    return next((each for each in ours.paths(place) if each.is_relative_to(root)), None) if place else None


def outside(path: Path, root: Path) -> str:
    """Return where the path leads if that is not below the root, as the rest of a sentence; else an empty string."""
    if (leads_to := mount_table.resolved(path)).is_relative_to(mount_table.resolved(root)):
        return ""
    where = "is" if leads_to == path else f"leads to {leads_to}, which is"
    return f"{where} outside of devlet's root {root}: devlet calls no socket there"


def refusal(path: Path, below: Path | None = None) -> str:
    """Return why the socket must not be called now, as the rest of a sentence that begins with the path, or an empty
    string. `below` is the only directory whose sockets are called; None means no restriction."""
    if not path.is_absolute():
        return "is not an absolute path"
    if "\0" in str(path):
        return "contains a zero byte"
    if (size := socket_paths.length(path)) > socket_paths.MAX_BYTES:
        return f"has {size} bytes, a socket path has at most {socket_paths.MAX_BYTES}"
    if below is not None and (elsewhere := outside(path, below)):
        return elsewhere
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as e:
        return f"cannot be accessed: {e.strerror or e}"
    if not stat.S_ISSOCK(found.st_mode):
        return f"is {kind(found.st_mode)}, not a socket"
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to uid {found.st_uid}: a driver's socket must belong to root or to uid {os.geteuid()}"
    return ""
