"""The health of devices across a restart, in `dra_health_state`. Losing it costs little, so no failure is an error.

The file is not synced: after a power failure it would be too old in any case.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

from anyio import to_thread

from devlet.errors import DevletError
from devlet.kit import atomic_file
from devlet.kit.facts import facts
from devlet.state import checkpoint_file, health_file
from devlet.state.health_file import DeviceHealth

__all__ = ["FILE", "HealthStore"]

log = logging.getLogger(__name__)

FILE = "dra_health_state"

Devices = Mapping[str, tuple[DeviceHealth, ...]]


class HealthStore:
    """The file in a directory, and whether it has to be written."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE
        self._content: Devices | None = {}  # what the file contains; None if that is unknown
        self._failing = False

    async def read(self) -> Devices:
        """Return the saved health, or nothing if the file is missing or cannot be read. Remove unfinished writes."""
        try:
            self._content = await to_thread.run_sync(self._read)
        except FileNotFoundError:
            self._content = {}
        except (DevletError, OSError) as e:
            self._content = None
            log.warning("health of devices not read", extra=facts(path=str(self.path), err=e))
        return self._content or {}

    def _read(self) -> Devices:
        atomic_file.remove_leftovers(self.path)
        return health_file.decode(checkpoint_file.read(self.path, health_file.MAX_BYTES))

    async def write(self, content: Devices) -> None:
        """Write the file if it would change. Of several failures in a row, only the first is logged as a warning."""
        if content == self._content:
            return
        try:
            await to_thread.run_sync(self._write, content)
        except OSError as e:
            level = logging.DEBUG if self._failing else logging.WARNING
            log.log(level, "health of devices not written", extra=facts(path=str(self.path), err=e))
            self._failing, self._content = True, None
        else:
            self._failing, self._content = False, content

    def _write(self, content: Devices) -> None:
        atomic_file.write(self.path, health_file.encode(content), durable=False)
