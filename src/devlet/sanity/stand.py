"""Where drivers under test are started: each has a root of its own, which goes with it unless it is kept."""

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

_TRIM = 0.05  # seconds between two looks at the size of a log
_KEPT = "[0-9][0-9][0-9]"
_LONG_NAME = 40  # characters that a driver's socket may have at least


@dataclass(slots=True)
class BaseStand:
    """Starts `command` each time, or, without one, finds the driver that runs. `keep`: where roots and logs are made,
    and stay."""

    command: Command | None = None
    change_command: str = ""
    cdi_directories: Sequence[Path] = DEFAULT_DIRECTORIES
    keep: Path | None = None
    _patience: Patience = field(default_factory=Patience)
    _unready: str = ""  # of the first one: it is not waited for again
    _opened: int = 0

    @contextmanager
    def _root(self) -> Iterator[Path]:
        """InvalidInput if there cannot be one, or it is too long for sockets in its folders."""
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
            raise InvalidInput(f"{keep} has what was kept by an earlier run: remove it, or use another directory")
        try:
            root.mkdir(parents=True)
        except OSError as e:
            raise InvalidInput(f"{keep}: {e.strerror}") from e
        return root


def _check_length(root: Path) -> None:
    longest = root / "plugins_registry" / ("x" * _LONG_NAME)
    if socket_paths.length(longest) > socket_paths.MAX_BYTES:
        raise InvalidInput(f"{root} is too long for sockets: use a shorter directory (TMPDIR, or --keep)")


def check_directory(path: Path) -> None:
    """InvalidInput if a driver cannot be attached to there, as nobody has made it."""
    if not path.is_dir():
        raise InvalidInput(f"{path}: no such directory: a driver that runs would have sockets there")


async def called(paths: Iterable[Path], call: Callable[[Path], Awaitable[object]]) -> str:
    """Call a driver on the sockets that it may have. What to add to its trouble where somebody listens in vain."""
    said = ""
    for path in sorted(paths):
        if not (path.is_socket() and await _is_listened_on(path)):
            continue
        try:
            await call(path)
        except PluginError as e:
            said += f"\nsomebody listens on {path.name}, and cannot be called: {e.message}"
    return said


async def _is_listened_on(path: Path) -> bool:
    try:
        async with await anyio.connect_unix(path):
            return True
    except OSError:
        return False


async def trimming(driver: Driver) -> None:
    """For as long as it may run: it must not fill the disk."""
    while isinstance(driver, DriverProcess):
        driver.trim_log()
        await anyio.sleep(_TRIM)
