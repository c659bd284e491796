"""A check: one rule of a contract that a driver can break, and the function that tests it.

    checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

    @checks.add("DP-REG-2", "The plugin registers with API version v1beta1", rule="…", how="…")
    async def version(rig: DevicePluginRig) -> Outcome:
        return Passed() if … else Failed("the version is 0.1, expected v1beta1")

A check returns its outcome. If it raises `CannotTell`, because there is nothing to test, it is skipped. An error that
the driver returns unexpectedly is a finding as well, and needs no code in the check.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from devlet.errors import DevletError, PluginError
from devlet.sanity.sources import PRACTICE, Source

__all__ = ["CannotTell", "Check", "Checks", "Failed", "Garbled", "Outcome", "Passed", "Skipped", "Warned"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Passed:
    note: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The driver broke the rule. `seen` says what happened, and `how` replaces the check's own `how`."""

    seen: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """The driver keeps its contract, but does something that its users do not want."""

    seen: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    why: str


Outcome: TypeAlias = Passed | Failed | Warned | Skipped


class CannotTell(DevletError):
    """A check has nothing to test; the text says what is missing."""


class Garbled(PluginError):
    """A response that cannot be decoded. Unlike an error, it does not count as a refusal."""


@dataclass(frozen=True, slots=True)
class Check(Generic[R]):
    """One check. `title` states the rule, `rule` explains it with its `source`, and `how` says how to test it by hand.

    A `fresh` check gets its own driver, because it restarts or stops it; all others share one. `within` is a time limit
    in seconds, in addition to what the rig itself waits for."""

    id: str
    title: str
    rule: str
    how: str
    run: Callable[[R], Awaitable[Outcome]]
    source: Source = PRACTICE
    fresh: bool = False
    within: float = 60.0


Run: TypeAlias = Callable[[R], Awaitable[Outcome]]


@dataclass(slots=True)
class Checks(Generic[R]):
    """Checks in the order in which they were added. `source` is the default source."""

    source: Source
    _all: list[Check[R]] = field(default_factory=list)

    def add(
        self,
        id: str,
        title: str,
        *,
        rule: str,
        how: str,
        source: Source | None = None,
        fresh: bool = False,
        within: float = 60.0,
    ) -> Callable[[Run[R]], Run[R]]:
        def added(run: Run[R]) -> Run[R]:
            self._all.append(Check(id, title, rule, how, run, source or self.source, fresh, within))
            return run

        return added

    def __iter__(self) -> Iterator[Check[R]]:
        return iter(self._all)
