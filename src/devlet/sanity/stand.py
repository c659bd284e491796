"""Where drivers under test are started: each has a root of its own, which goes with it unless it is kept."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devlet.errors import InvalidInput
from devlet.kit import socket_paths
from devlet.runtime.cdi.spec_dir import DEFAULT_DIRECTORIES
from devlet.sanity.driver import Command

__all__ = ["BaseStand"]

_LONG_NAME = 40  # characters that a driver's socket may have at least


@dataclass(slots=True)
class BaseStand:
    """Starts `command` each time, or, without one, finds the driver that runs. `keep`: where roots and logs are made,
    and stay."""

    command: Command | None = None
    change_command: str = ""
    cdi_directories: Sequence[Path] = DEFAULT_DIRECTORIES
    keep: Path | None = None
    _unready: str = ""  # of the first one: it is not waited for again
    _opened: int = 0

    @contextmanager
    def _root(self) -> Iterator[Path]:
        """InvalidInput if it is too long for sockets in its folders."""
        self._opened += 1
        if self.keep:
            root = self.keep.absolute() / f"{self._opened:03}"
            root.mkdir(parents=True, exist_ok=True)
        else:
            root = Path(tempfile.mkdtemp(prefix="ds"))
        try:
            longest = root / "plugins_registry" / ("x" * _LONG_NAME)
            if socket_paths.length(longest) > socket_paths.MAX_BYTES:
                raise InvalidInput(f"{root} is too long for sockets: use a shorter directory (TMPDIR, or --keep)")
            yield root
        finally:
            if not self.keep:
                shutil.rmtree(root, ignore_errors=True)
