"""The root: the directory with a node's state and sockets, laid out like `/var/lib/kubelet`.

Users who can write here can get any device, so the root must belong to our user alone. Its path must be short, because
plugins create sockets below it, and a socket path has at most 107 bytes.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from devlet.errors import InvalidInput
from devlet.kit import socket_paths

DATABASE = "cluster.db"  # of a node with an embedded cluster
LOCK_FILE = "devlet.lock"  # held by the daemon that runs on the root
REGISTRY = "plugins_registry"
PLUGINS = "plugins"  # where drivers keep their sockets and data
DEVICE_PLUGINS = "device-plugins"
POD_RESOURCES = "pod-resources"
CDI = "cdi"
SOCKET_NAME_BYTES = 64  # reserved for the name of a plugin's registration socket

_SYSTEM_ROOT = Path("/var/lib/devlet")


def default_root(environ: Mapping[str, str], uid: int | None = None) -> Path:
    """Return `/var/lib/devlet` for root, and `$XDG_STATE_HOME/devlet` for other users.

    Without XDG_STATE_HOME that is `~/.local/state/devlet`, or `~/.devlet` if that path is too long for sockets."""
    if (os.geteuid() if uid is None else uid) == 0:
        return _SYSTEM_ROOT
    state = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # relative paths are ignored, according to the XDG specification
        return Path(state) / "devlet"
    home = Path(environ.get("HOME") or "~").expanduser()
    usual = home / ".local" / "state" / "devlet"
    return usual if longest_socket_path(usual) <= socket_paths.MAX_BYTES else home / ".devlet"


def longest_socket_path(root: Path) -> int:
    """Return the length of the longest socket path in bytes."""
    return socket_paths.length(root / REGISTRY) + 1 + SOCKET_NAME_BYTES


def prepare(root: Path) -> None:
    """Create the root for our user alone if it does not exist. Raises InvalidInput if it is unsafe or too long."""
    _check_length(root)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = root.stat()
    except FileExistsError as e:
        raise InvalidInput(f"root {root} is not a directory") from e
    except OSError as e:
        raise InvalidInput(f"root {root} cannot be used: {e.strerror or e}; choose another with --root") from e
    if found.st_uid != os.geteuid():
        raise InvalidInput(
            f"root {root} belongs to user {found.st_uid}, not to user {os.geteuid()} who runs devlet;"
            " choose another with --root"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise InvalidInput(f"root {root} is writable by other users (mode {mode:04o}); run: chmod go-w {root}")
    _check_content(root)


# The modes are those of a kubelet's directories.
LAYOUT = {DEVICE_PLUGINS: 0o755, REGISTRY: 0o750, PLUGINS: 0o750, POD_RESOURCES: 0o750, CDI: 0o755}
# Files that show that a directory is the root of a devlet or of a kubelet.
_SIGNS = frozenset({LOCK_FILE, DATABASE, DEVICE_PLUGINS, REGISTRY, POD_RESOURCES})
TEST_LOCK = ".devlet-test-root"  # held by a test while it uses the root; an unheld one is left over from a killed test
# Other files that a new root may contain.
_BESIDE = (".log", ".yaml", TEST_LOCK)


def _check_content(root: Path) -> None:
    """Raise InvalidInput for a directory that is used for something else, such as /etc."""
    try:
        names = sorted(os.listdir(root))
    except OSError as e:
        raise InvalidInput(f"root {root} cannot be read: {e.strerror or e}; choose another with --root") from e
    foreign = [name for name in names if name not in LAYOUT and not name.endswith(_BESIDE)]
    if foreign and _SIGNS.isdisjoint(names):
        raise InvalidInput(
            f"root {root} is not empty and was not created by devlet or a kubelet (it contains {foreign[0]!r});"
            " choose an empty or a new directory with --root"
        )


def lay_out(root: Path) -> None:
    """Create the directories that drivers expect. Call it before devlet listens, because a driver may start then."""
    for name, mode in LAYOUT.items():
        try:
            (root / name).mkdir(mode, exist_ok=True)
        except OSError as e:
            hint = "; move the file there away" if isinstance(e, FileExistsError) else ""
            raise InvalidInput(f"{root / name} cannot be created: {e.strerror or e}{hint}") from e


def _check_length(root: Path) -> None:
    longest = longest_socket_path(root)
    if longest > socket_paths.MAX_BYTES:
        most = socket_paths.MAX_BYTES - (longest - socket_paths.length(root))
        raise InvalidInput(
            f"root {root} is too long: sockets in {REGISTRY} need up to {longest} bytes and"
            f" {socket_paths.MAX_BYTES} are possible; choose a --root of at most {most} bytes"
        )
