"""A check: one rule of a contract that a driver can break, and how to see whether it does.

    checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

    @checks.add("DP-REG-2", "It registers with API version v1beta1", rule="…", how="…")
    async def version(rig: DevicePluginRig) -> Outcome:
        return Passed() if … else Failed("it registered with version 0.1")

What a check finds is a value. It raises `CannotTell` where it has nothing to look at, which makes it skipped; an error
that the driver answers where it should not is a finding too, and needs no code in the check.
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
    """`seen` is what the driver did. `how` to see it without devlet, if there is more to say than the check's own."""

    seen: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """Within the contract, and still not what its users want."""

    seen: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    why: str


Outcome: TypeAlias = Passed | Failed | Warned | Skipped


class CannotTell(DevletError):
    """There is nothing to look at; the text says what is missing."""


class Garbled(PluginError):
    """An answer that cannot be decoded. It refuses nothing: nobody knows what it says."""


@dataclass(frozen=True, slots=True)
class Check(Generic[R]):
    """`title` is true of a good driver. `rule` is what the contract says, and `source` where; `how` says how to see it
    by hand. A `fresh` one gets a driver of its own, as it restarts or stops it; others share one. `within` are seconds,
    beyond what the rig itself waits for."""

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
    """In the order in which they were added. `source` is that of all whose own is not given."""

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
