"""Sockets whose process was killed: the file stays, and whoever looks for drivers tries it again and again.

What a newcomer gets wrong: a file says nothing about who serves it. A socket is dead if nobody answers there, and still
does not a moment later: between making a socket and listening on it nobody answers either.
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
    """Remove those of the paths that are dead sockets."""
    if dead := await anyio.to_thread.run_sync(_dead, list(paths)):
        await clock.sleep(MOMENT)
        await anyio.to_thread.run_sync(_remove, dead)


def is_served(path: Path) -> bool:
    """InvalidInput if something else is there."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise InvalidInput(f"{path} exists and is no socket: remove it, or use another name")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except (TimeoutError, BlockingIOError):
            return True  # somebody listens, and has no time
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
