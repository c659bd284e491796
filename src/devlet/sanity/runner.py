"""Runs checks one after the other, on drivers that a stand provides, and says what came of each.

Checks that do not disturb the driver share one, in their order; then come those that want one of their own. Where
something was found the driver is replaced: what is wrong with it then is not held against the next check.
"""

import time
import zlib
from collections import deque
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import anyio

from devlet.errors import PluginError
from devlet.kit.clock import Clock, SystemClock
from devlet.objects import timestamps
from devlet.sanity.check import CannotTell, Check, Failed, Outcome, Skipped
from devlet.sanity.report import Report, Result
from devlet.testing.dice import Dice

__all__ = ["Listener", "Rig", "Runner", "Stand"]


class Rig(Protocol):
    """A driver and what drives it."""

    dice: Dice  # for what a check does by chance; the runner sets it before each

    @property
    def trouble(self) -> str:
        """Why the driver cannot be driven any more, in one sentence and the end of its log; empty if it can."""
        ...

    @property
    def is_hopeless(self) -> bool:
        """Whether another driver would not be any better: it never came up."""
        ...

    @property
    def patience(self) -> float:
        """Seconds that a check may spend on waiting for the driver."""
        ...

    def log(self) -> str:
        """The end of the driver's log; empty if it is not known."""
        ...


R = TypeVar("R", bound=Rig)
R_co = TypeVar("R_co", bound=Rig, covariant=True)


class Stand(Protocol[R_co]):
    """Where drivers are started. Each `open` is another one; it has done what can be done to get it ready."""

    @property
    def kind(self) -> str: ...

    @property
    def driver(self) -> str:
        """How it is started, as people would write it."""
        ...

    def open(self) -> AbstractAsyncContextManager[R_co]: ...


class Listener(Protocol):
    """Hears of each check when it begins and when it has ended."""

    def began(self, check: Check[R]) -> None: ...
    def ended(self, result: Result) -> None: ...


@dataclass(slots=True)
class Runner(Generic[R]):
    stand: Stand[R]
    listener: Listener
    seed: int = 0
    clock: Clock = field(default_factory=SystemClock)
    _results: dict[str, Result] = field(default_factory=dict)
    _trouble: str = ""

    async def run(self, checks: Iterable[Check[R]]) -> Report:
        """InvalidInput, Unavailable or Forbidden if the stand cannot be had at all."""
        wanted = list(checks)
        began, started = self.clock.now(), self.clock.monotonic()
        await self._share(deque(check for check in wanted if not check.fresh))
        for check in wanted:
            if check.fresh:
                await self._share(deque([check]))
        results = tuple(self._results[check.id] for check in wanted)
        took = self.clock.monotonic() - started
        stamp = timestamps.format_time(began)
        return Report(self.stand.kind, self.stand.driver, self.seed, stamp, took, results, self._trouble)

    async def _share(self, waiting: deque[Check[R]]) -> None:
        while waiting:
            async with self.stand.open() as rig:
                self._trouble = self._trouble or rig.trouble
                while waiting:
                    result = await self._one(waiting.popleft(), rig)
                    if not rig.is_hopeless and (isinstance(result.outcome, Failed) or rig.trouble):
                        break

    async def _one(self, check: Check[R], rig: R) -> Result:
        rig.dice = Dice(self.seed ^ zlib.crc32(check.id.encode()))
        self.listener.began(check)
        started = time.monotonic()
        outcome = await _outcome(check, rig)
        log = rig.log() if isinstance(outcome, Failed) else ""
        result = Result(check, outcome, time.monotonic() - started, log)
        self._results[check.id] = result
        self.listener.ended(result)
        return result


async def _outcome(check: Check[R], rig: R) -> Outcome:
    limit = check.within + rig.patience
    try:
        with anyio.move_on_after(limit):
            return await check.run(rig)
    except (CannotTell, PluginError) as e:
        return _said(e, rig.trouble)
    except BaseExceptionGroup as e:  # of a check that does several things at once
        expected, rest = e.split((CannotTell, PluginError))
        if rest is not None or expected is None:
            raise
        return _said(_leaf(expected), rig.trouble)
    return Failed(f"not done after {limit:g} s{_and(rig.trouble)}")


def _said(error: BaseException, trouble: str) -> Outcome:
    if isinstance(error, PluginError):
        return Failed(f"{error.message}{_and(trouble)}")
    return Skipped(str(error))


def _leaf(error: BaseException) -> BaseException:
    return _leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _and(trouble: str) -> str:
    return f"; {trouble}" if trouble else ""
