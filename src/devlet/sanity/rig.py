"""A driver under test, of any kind: its process, how long to wait for it, and what can be done to it.

The rig of a kind of driver adds a kubelet and clients. `come_up` starts the driver; if that fails, the rig is
`unready`, and checks that need the driver are skipped.
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

_POLL = 0.02  # seconds between two polls of a condition


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds. `start` is for the first registration of a driver, `wait` for later ones and for everything
    else. `stop` is the default grace period of pods."""

    start: float = 30.0
    wait: float = 30.0
    settle: float = 0.5  # for more of the same, after the first one
    quiet: float = 1.0  # during which nothing should happen
    answer: float = 10.0
    dial: float = 10.0
    late: float = 2.0  # between two steps of the start of a kubelet
    stop: float = 30.0


@dataclass(slots=True, kw_only=True)
class Rig(ABC):
    first_check: ClassVar[str]  # the one that reports that the driver did not come up

    driver: Driver
    tasks: TaskGroup
    change_command: str = ""
    dice: Dice = field(default_factory=lambda: Dice(0))
    unready: str = ""  # why it could not be tested from the beginning
    stopped: bool = False  # by a check

    @property
    @abstractmethod
    def words(self) -> Mapping[str, Path]:
        """The values of the placeholders in commands."""

    @property
    @abstractmethod
    def is_registered(self) -> bool: ...

    @abstractmethod
    def need_driver(self) -> None:
        """Raise CannotTell if there is no driver to call."""

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
        return "" if self.is_registered else f"the driver is no longer registered; {_log_of(self.driver)}"

    @property
    def never_came_up(self) -> bool:
        return bool(self.unready)

    @property
    def missing(self) -> str:
        """Why there is no driver to call. The trouble itself is reported only by the first check and in the report."""
        if self.unready:
            return f"the driver did not come up: see {self.first_check}"
        return self.trouble or "the driver was stopped, so there is nothing to call"

    def log(self) -> str:
        return self.driver.log()

    # Its life cycle

    async def come_up(self, within: float) -> None:
        """Start the driver, unless it is attached, and wait until it is registered. If not, set `unready`."""
        if isinstance(self.driver, DriverProcess):
            await self.driver.start()
        await until(lambda: self.is_registered or bool(self.driver.ending), within)
        if not self.is_registered:
            self.unready = self._why(within)

    def _why(self, within: float) -> str:
        tried = f" ({len(self.refusals)} attempts failed, the last with: {self.refusals[-1]})" if self.refusals else ""
        if self.driver.ending:
            return f"the driver {self.driver.ending} before it was registered{tried}; {_log_of(self.driver)}"
        return f"the driver was not registered within {within:g} s{tried}; {_log_of(self.driver)}"

    async def revive(self) -> None:
        """Restart a driver that has exited, as its pod would be."""
        if self.driver.ending and not self.stopped:
            await self.driver.start()

    async def terminate(self, within: float) -> bool:
        """Send SIGTERM and return whether the driver exited in time. Raises CannotTell if it was not running."""
        self.need_driver()
        self.stopped = True
        return await self.driver.terminate(within)

    async def start_again(self) -> None:
        self.stopped = False
        await self.driver.start()

    # Its devices

    def need_change(self) -> None:
        """Raise CannotTell if there is no command that changes the devices."""
        if not self.change_command:
            raise CannotTell("there is no command that changes the devices: give one with --change")

    async def change_devices(self) -> None:
        """Run the command that changes the devices."""
        self.need_change()
        command = filled(self.change_command, self.words)
        done = await anyio.run_process(["sh", "-c", command], check=False, stderr=subprocess.STDOUT)
        if done.returncode:
            text = done.stdout.decode(errors="replace").strip()[:300]
            raise CannotTell(f"the command of --change exited with {done.returncode}: {text}")

    # Its process

    def log_bytes(self) -> int:
        """Return how much log the driver has written. Raises CannotTell if its log is not known."""
        if not isinstance(self.driver, DriverProcess) or self.driver.pid is None:
            raise CannotTell("the driver is attached or not running, so its log is not known")
        return self.driver.written()

    def usage(self) -> host.Usage:
        """Return what the driver's process uses. Raises CannotTell if it cannot be inspected."""
        if self.driver.pid is None:
            raise CannotTell("the driver's process is not known")
        try:
            return host.usage(self.driver.pid)
        except OSError as e:
            raise CannotTell(f"the driver's process cannot be inspected: {e}") from e


async def until(holds: Callable[[], bool], within: float) -> bool:
    """Poll until a condition without notification holds. Return whether it held in time."""
    with anyio.move_on_after(within):
        while not holds():  # noqa: ASYNC110  there is no notification
            await anyio.sleep(_POLL)
        return True
    return holds()


def _log_of(driver: Driver) -> str:
    if not isinstance(driver, DriverProcess):
        return "its log is not known"
    text = driver.log()
    return "the end of its log:\n" + text if text else "its log is empty"
