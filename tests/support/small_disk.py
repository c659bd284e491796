"""Run a program in a mount namespace of its own, where a directory can be a small disk that fills up.

command = on_small_disk(root / "device-plugins", "256k", [sys.executable, "story.py", str(root)])
subprocess.run(command, check=True)
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["fill", "in_mount_namespace", "on_small_disk"]

_COMMANDS = (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"])


def in_mount_namespace() -> list[str] | None:
    """Return the command prefix that lets a command mount, or None if that is not allowed here."""
    for command in _COMMANDS:
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    return None


def on_small_disk(directory: Path, size: str, command: Sequence[str]) -> list[str]:
    """Return the command that runs `command` with a tmpfs of that size at the directory."""
    mount = f'mount -t tmpfs -o size={size},mode=700 tmpfs "$1" && shift && exec "$@"'
    return [*(in_mount_namespace() or []), "sh", "-c", mount, "sh", str(directory), *command]


def fill(path: Path) -> None:
    """Write to a file until its disk is full. Remove the file to make room again."""
    with path.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
