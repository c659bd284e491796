"""Starts drivers under test, each with its own root directory, which is removed afterwards unless it is kept."""

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from devlet.errors import InvalidInput, PluginError
from devlet.kit import socket_paths
from devlet.runtime.cdi.spec_dir import DEFAULT_DIRECTORIES
from devlet.sanity.driver import Command, Driver, DriverProcess
from devlet.sanity.patience import Patience

__all__ = ["BaseStand", "called", "check_directory", "trimming"]

_TRIM = 0.05  # seconds between two checks of the size of a log
_KEPT = "[0-9][0-9][0-9]"
_LONG_NAME = 40  # characters that must be possible in the name of a driver's socket


@dataclass(slots=True)
class BaseStand:
    """Starts `command` each time, or attaches to a running driver if there is none. Roots and logs stay in `keep`."""

    command: Command | None = None
    change_command: str = ""
    cdi_directories: Sequence[Path] = DEFAULT_DIRECTORIES
    keep: Path | None = None
    _patience: Patience = field(default_factory=Patience)
    _unready: str = ""  # why the first driver did not come up; later ones are not waited for
    _opened: int = 0

    @contextmanager
    def _root(self) -> Iterator[Path]:
        """Yield a root. Raises InvalidInput if it cannot be created or its path is too long for sockets."""
        if self.keep:
            yield self._kept(self.keep.absolute())
            return
        root = Path(tempfile.mkdtemp(prefix="ds"))
        try:
            _check_length(root)
            yield root
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def _kept(self, keep: Path) -> Path:
        self._opened += 1
        root = keep / f"{self._opened:03}"
        _check_length(root)
        if self._opened == 1 and any(keep.glob(_KEPT)):
            raise InvalidInput(f"{keep} contains files of an earlier run: remove them, or use another directory")
        try:
            root.mkdir(parents=True)
        except OSError as e:
            raise InvalidInput(f"cannot create {keep}: {e.strerror}") from e
        return root


def _check_length(root: Path) -> None:
    longest = root / "plugins_registry" / ("x" * _LONG_NAME)
    if socket_paths.length(longest) > socket_paths.MAX_BYTES:
        raise InvalidInput(f"{root} is too long for sockets: use a shorter directory, with TMPDIR or --keep")


def check_directory(path: Path) -> None:
    """Raise InvalidInput if the directory in which a running driver has its sockets does not exist."""
    if not path.is_dir():
        raise InvalidInput(f"{path} does not exist: expected the directory with the sockets of a running driver")


async def called(paths: Iterable[Path], call: Callable[[Path], Awaitable[object]]) -> str:
    """Call a driver on the sockets that it may have. Return what to add to its trouble if calls fail."""
    text = ""
    for path in sorted(paths):
        if not (path.is_socket() and await _is_listened_on(path)):
            continue
        try:
            await call(path)
        except PluginError as e:
            text += f"\na process listens on {path.name}, but calling it failed: {e.message}"
    return text


async def _is_listened_on(path: Path) -> bool:
    try:
        async with await anyio.connect_unix(path):
            return True
    except OSError:
        return False


async def trimming(driver: Driver) -> None:
    """Keep the log of a driver from filling the disk while it runs."""
    while isinstance(driver, DriverProcess):
        driver.trim_log()
        await anyio.sleep(_TRIM)
