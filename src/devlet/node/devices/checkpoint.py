"""The device manager's checkpoint on disk: restored at the start, written after each change.

A damaged file is renamed, reported, and treated as missing: no device is allocatable before its plugin lists it.
"""

import logging
from collections.abc import Callable, Sequence

from anyio import to_thread

from devlet.errors import StateCorrupt
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.node.devices.checkpoint_content import CheckpointContent
from devlet.node.devices.inventory import Moment
from devlet.node.reports import Report
from devlet.state.checkpoint_file import CheckpointFile, GroupSaver

__all__ = ["Checkpoint"]

log = logging.getLogger(__name__)


class Checkpoint:
    """`existed` is True if there was an intact file at the start; `damage` names the damaged files that were kept.
    `saver` writes the file while its `run` runs."""

    def __init__(
        self, file: CheckpointFile, content: CheckpointContent, clock: Clock, report: Callable[[Report], None]
    ) -> None:
        self._file = file
        self._content = content
        self._clock = clock
        self._report = report
        self.saver = GroupSaver(file, content.encode, clock=clock)
        self.existed = False
        self.damage: tuple[str, ...] = ()

    async def restore(self) -> None:
        """Read the file into the inventory and the allocations."""
        await to_thread.run_sync(self._file.prepare)
        try:
            blob = await to_thread.run_sync(self._file.read)
            if blob is not None:
                now = Moment(self._clock.now(), self._clock.monotonic())
                self._report_dropped(self._content.restore(blob, now))
            self.existed = blob is not None
        except StateCorrupt as e:
            await self._set_aside(e)
        aside = await to_thread.run_sync(self._file.set_aside_files)
        self.damage = tuple(f"{path} was damaged and set aside" for path in aside)

    async def _set_aside(self, error: StateCorrupt) -> None:
        path = await to_thread.run_sync(self._file.set_aside, self._clock.now())
        repair = f"devlet checkpoint repair {path} --output {self._file.path} --force"
        message = (
            f"{error}; kept as {path}. What running pods hold is taken from their statuses; or stop devlet and {repair}"
        )
        log.error("checkpoint damaged", extra=facts(path=path, err=error))
        self._report(Report("Warning", "DeviceCheckpointDamaged", message))

    def _report_dropped(self, problems: Sequence[str]) -> None:
        for problem in problems:
            log.error("checkpoint entry dropped", extra=facts(err=problem))
            message = f"an entry of {self._file.path.name} was dropped: {problem}"
            self._report(Report("Warning", "DeviceCheckpointDamaged", message))
