"""A driver under test, of whatever kind: its process, how long it is waited for, and what can be done to it.

A rig of one kind adds its kubelet, and what there is to call. `come_up` starts the driver; if that fails the rig is
`unready`, and what cannot be looked at is skipped.
"""

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import anyio
from anyio.abc import TaskGroup

from devlet.kit.dice import Dice
from devlet.sanity import host
from devlet.sanity.check import CannotTell
from devlet.sanity.driver import Driver, DriverProcess, filled

__all__ = ["Rig", "Settings", "until"]

_LOOK = 0.02  # seconds between two looks at what nobody tells


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds. `start` is how long a driver may take until it is registered for the first time, `wait` until it is
    again, or has done something else. `stop` is what pods have by default."""

    start: float = 30.0
    wait: float = 30.0
    settle: float = 0.5  # for more of the same, after the first has come
    quiet: float = 1.0  # in which nothing should happen
    answer: float = 10.0
    dial: float = 10.0
    late: float = 2.0  # between two steps of a kubelet's start
    stop: float = 30.0


@dataclass(slots=True, kw_only=True)
class Rig(ABC):
    first_check: ClassVar[str]  # which says that it did not come up

    driver: Driver
    tasks: TaskGroup
    change_command: str = ""
    dice: Dice = field(default_factory=lambda: Dice(0))
    unready: str = ""  # why it could not be driven from the beginning
    stopped: bool = False  # by a check

    @property
    @abstractmethod
    def words(self) -> Mapping[str, Path]:
        """What stands in braces in commands."""

    @property
    @abstractmethod
    def is_registered(self) -> bool: ...

    @abstractmethod
    def need_driver(self) -> None:
        """CannotTell if there is nothing to call."""

    @property
    @abstractmethod
    def refusals(self) -> Sequence[str]:
        """Why registrations failed."""

    @property
    def trouble(self) -> str:
        if self.unready:
            return self.unready
        if self.stopped:
            return ""
        if self.driver.ending:
            return f"the driver {self.driver.ending}; {_log_of(self.driver)}"
        return "" if self.is_registered else f"the driver is not registered any more; {_log_of(self.driver)}"

    @property
    def is_hopeless(self) -> bool:
        return bool(self.unready)

    @property
    def missing(self) -> str:
        """Why there is nothing to call. The trouble is told once, by the first check and in the report."""
        if self.unready:
            return f"the driver did not come up: see {self.first_check}"
        return self.trouble or "the driver was stopped, so there is nothing to call"

    def log(self) -> str:
        return self.driver.log()

    # Its life

    async def come_up(self, within: float) -> None:
        """Start it, unless it runs already, and wait until it is registered. Why it is not is in `unready`."""
        if isinstance(self.driver, DriverProcess):
            await self.driver.start()
        await until(lambda: self.is_registered or bool(self.driver.ending), within)
        if not self.is_registered:
            self.unready = self._why(within)

    def _why(self, within: float) -> str:
        tried = f" ({len(self.refusals)} tries failed, the last one with: {self.refusals[-1]})" if self.refusals else ""
        if self.driver.ending:
            return f"the driver {self.driver.ending} before it was registered{tried}; {_log_of(self.driver)}"
        return f"the driver was not registered within {within:g} s{tried}; {_log_of(self.driver)}"

    async def revive(self) -> None:
        """A driver that has ended is started again, as its pod would be."""
        if self.driver.ending and not self.stopped:
            await self.driver.start()

    async def terminate(self, within: float) -> bool:
        """SIGTERM; whether it ended in time. CannotTell if there was nothing to end."""
        self.need_driver()
        self.stopped = True
        return await self.driver.terminate(within)

    async def start_again(self) -> None:
        self.stopped = False
        await self.driver.start()

    # Its devices

    def need_change(self) -> None:
        """CannotTell if nobody said how to make the devices change."""
        if not self.change_command:
            raise CannotTell("nobody said how to make the devices change: give --change COMMAND")

    async def change_devices(self) -> None:
        """Run the command that makes other devices be there."""
        self.need_change()
        command = filled(self.change_command, self.words)
        done = await anyio.run_process(["sh", "-c", command], check=False, stderr=subprocess.STDOUT)
        if done.returncode:
            text = done.stdout.decode(errors="replace").strip()[:300]
            raise CannotTell(f"the command of --change exited with {done.returncode}: {text}")

    # Its process

    def log_bytes(self) -> int:
        """How much it has written. CannotTell if it is not ours."""
        if not isinstance(self.driver, DriverProcess) or self.driver.pid is None:
            raise CannotTell("the driver is attached, or does not run: its log is not known")
        return self.driver.written()

    def usage(self) -> host.Usage:
        """CannotTell if it cannot be looked at."""
        if self.driver.pid is None:
            raise CannotTell("the driver's process is not known")
        try:
            return host.usage(self.driver.pid)
        except OSError as e:
            raise CannotTell(f"the driver's process cannot be looked at: {e}") from e


async def until(holds: Callable[[], bool], within: float) -> bool:
    """For what nobody tells: whether it came to hold."""
    with anyio.move_on_after(within):
        while not holds():  # noqa: ASYNC110  see above
            await anyio.sleep(_LOOK)
        return True
    return holds()


def _log_of(driver: Driver) -> str:
    if not isinstance(driver, DriverProcess):
        return "its log is its own"
    text = driver.log()
    return "the end of its log:\n" + text if text else "its log is empty"
