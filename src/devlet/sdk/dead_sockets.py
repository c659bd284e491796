"""Remove sockets whose process was killed. The file stays, and a node that looks for drivers keeps trying it.

The file does not show whether a process serves the socket. A socket is dead if a connection is refused, and is refused
again a moment later: between the creation of a socket and the call of `listen`, connections are refused as well.
"""

import logging
import socket
import stat
from collections.abc import Iterable
from pathlib import Path

import anyio

from devlet.errors import DevletError, InvalidInput
from devlet.kit.clock import Clock
from devlet.kit.facts import facts

__all__ = ["is_served", "sweep"]

log = logging.getLogger(__name__)

MOMENT = 0.2  # seconds


async def sweep(paths: Iterable[Path], clock: Clock) -> None:
    """Remove the paths that are dead sockets."""
    if dead := await anyio.to_thread.run_sync(_dead, list(paths)):
        await clock.sleep(MOMENT)
        await anyio.to_thread.run_sync(_remove, dead)


def is_served(path: Path) -> bool:
    """Return True if a process listens on the socket. Raise InvalidInput if the path is not a socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise InvalidInput(f"{path} exists and is not a socket: remove it, or use another name")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except (TimeoutError, BlockingIOError):
            return True  # a process listens, and is busy
    return True


def _dead(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if _is_dead(path)]


def _is_dead(path: Path) -> bool:
    try:
        return path.exists() and not is_served(path)
    except (OSError, DevletError):
        return False


def _remove(paths: Iterable[Path]) -> None:
    for path in _dead(paths):
        try:
            path.unlink(missing_ok=True)
        except OSError as e:
            log.warning("dead socket cannot be removed", extra=facts(path=path, err=e))
        else:
            log.info("dead socket removed", extra=facts(path=path))
