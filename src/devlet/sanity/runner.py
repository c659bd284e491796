"""Runs checks one after the other, on drivers that a stand provides, and reports the outcome of each.

Checks that do not disturb the driver run first and share one; then come those that need their own driver. After a
finding the driver is replaced, so that a broken driver does not affect the next check. A driver that came up once must
come up every time: the first check for which it does not come up fails, whatever its rule.
"""

import time
import zlib
from collections import deque
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import anyio
import anyio.lowlevel

from devlet.errors import DevletError, PluginError
from devlet.kit.clock import Clock, SystemClock
from devlet.kit.dice import Dice
from devlet.objects.values import timestamps
from devlet.sanity.check import CannotTell, Check, Failed, Outcome, Skipped
from devlet.sanity.report import Report, Result, plain

__all__ = ["Listener", "Rig", "Runner", "Stand"]

_AGAIN = "start it several times, one after the other, each time with empty directories"


class Rig(Protocol):
    """A driver and what drives it."""

    dice: Dice  # for random choices of a check; the runner sets it before each

    @property
    def trouble(self) -> str:
        """Why the driver can no longer be tested, in one sentence and the end of its log; empty if it can."""
        ...

    @property
    def never_came_up(self) -> bool:
        """Whether the driver never came up, so that starting another one would not help."""
        ...

    @property
    def patience(self) -> float:
        """Seconds that a check may spend waiting for the driver."""
        ...

    def log(self) -> str:
        """Return the end of the driver's log; empty if it is not known."""
        ...


R = TypeVar("R", bound=Rig)
R_co = TypeVar("R_co", bound=Rig, covariant=True)


class Stand(Protocol[R_co]):
    """Starts drivers. Each `open` starts another one and waits until it is ready, if it gets ready."""

    @property
    def kind(self) -> str: ...

    @property
    def driver(self) -> str:
        """The command that starts the driver, as a shell would take it."""
        ...

    def open(self) -> AbstractAsyncContextManager[R_co]: ...


class Listener(Protocol):
    """Is notified when a check begins and when it has finished."""

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
    _came_up: bool = False
    _lost: str = ""  # the first check for which it no longer came up
    _scope: anyio.CancelScope | None = None
    _interrupted: str = ""

    async def run(self, checks: Iterable[Check[R]]) -> Report:
        """Run the checks. Raises InvalidInput, Unavailable or Forbidden if no driver can be started at all."""
        wanted = list(checks)
        began, started = self.clock.now(), self.clock.monotonic()
        with anyio.CancelScope() as self._scope:
            await self._share(deque(check for check in wanted if not check.fresh))
            for check in wanted:
                if check.fresh:
                    await self._share(deque([check]))
        results = tuple(self._results[check.id] for check in wanted if check.id in self._results)
        took = self.clock.monotonic() - started
        stamp = timestamps.format_time(began)
        trouble, driver = plain(self._trouble), plain(self.stand.driver)
        return Report(self.stand.kind, driver, self.seed, stamp, took, results, trouble, self._interrupted)

    def interrupt(self, why: str) -> None:
        """Stop the driver, and end the run with a report of the checks that have finished."""
        self._interrupted = why
        if self._scope:
            self._scope.cancel()

    async def _share(self, waiting: deque[Check[R]]) -> None:
        while waiting:
            before = len(waiting)
            try:
                async with self.stand.open() as rig:
                    await self._drive(waiting, rig)
            except (DevletError, BaseExceptionGroup) as e:
                if not self._results or _rest(e, DevletError):
                    raise
                if len(waiting) == before:
                    self._end(waiting.popleft(), _could_not_tell(e))

    async def _drive(self, waiting: deque[Check[R]], rig: R) -> None:
        """Run checks on one driver until something is wrong with it."""
        self._trouble = self._trouble or rig.trouble
        while waiting:
            result = await self._one(waiting.popleft(), rig)
            await anyio.lowlevel.checkpoint()  # the run may have been interrupted
            if not rig.never_came_up and (isinstance(result.outcome, Failed) or rig.trouble):
                return

    async def _one(self, check: Check[R], rig: R) -> Result:
        rig.dice = Dice(self.seed ^ zlib.crc32(check.id.encode()))
        self.listener.began(check)
        started = time.monotonic()
        outcome = self._absent(check, rig) or await _outcome(check, rig)
        log = rig.log() if isinstance(outcome, Failed) else ""
        return self._end(check, outcome, time.monotonic() - started, log)

    def _absent(self, check: Check[R], rig: R) -> Outcome | None:
        """Return an outcome if the driver is not there before the check has begun."""
        if self._came_up and rig.never_came_up:
            if self._lost:
                return Skipped(f"the driver no longer comes up: see {self._lost}")
            self._lost = check.id
            return Failed(f"the driver came up before, but no longer does: {rig.trouble}", _AGAIN)
        self._came_up = self._came_up or not rig.never_came_up
        return Failed(rig.trouble) if rig.trouble and not rig.never_came_up else None

    def _end(self, check: Check[R], outcome: Outcome, took: float = 0.0, log: str = "") -> Result:
        result = Result(check, outcome, took, plain(log))
        self._results[check.id] = result
        self.listener.ended(result)
        return result


async def _outcome(check: Check[R], rig: R) -> Outcome:
    outcome = await _seen(check, rig)
    if rig.trouble and not (check.fresh or rig.never_came_up or isinstance(outcome, Failed)):
        return Failed(rig.trouble)
    return outcome


async def _seen(check: Check[R], rig: R) -> Outcome:
    limit = check.within + rig.patience
    try:
        with anyio.move_on_after(limit):
            return await check.run(rig)
    except DevletError as e:
        return _outcome_of(e, rig.trouble)
    except BaseExceptionGroup as e:  # from a check that runs several tasks
        if _rest(e, DevletError):
            raise
        return _outcome_of(_most_telling(e), rig.trouble)
    return Failed(f"the check did not finish within {limit:g} s{_and(rig.trouble)}")


def _rest(error: BaseException, kind: type[BaseException]) -> bool:
    """Return whether the error contains anything else than this kind."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(kind)[1] is not None
    return not isinstance(error, kind)


def _outcome_of(error: BaseException, trouble: str) -> Outcome:
    if isinstance(error, PluginError):
        return Failed(f"{error.message}{_and(trouble)}")
    return Skipped(str(error)) if isinstance(error, CannotTell) else _could_not_tell(error)


def _could_not_tell(error: BaseException) -> Outcome:
    return Skipped(f"the check could not be run: {_leaf(error)}")


def _most_telling(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return an error of the driver if there is one, because it says more than one of ours."""
    return _leaf(group.subgroup(PluginError) or group.subgroup(CannotTell) or group)


def _leaf(error: BaseException) -> BaseException:
    return _leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _and(trouble: str) -> str:
    return f"; {trouble}" if trouble else ""
