"""Make calls between a node and a driver fail, and record the calls.

    faults = Faults()
    faults.delay("NodePrepareResources", 0.5)                     every call is forwarded later
    faults.hang("NodePrepareResources", after=True)               … the driver does its work, but the answer waits
    faults.drop("NodePrepareResources", times=1)                  the next call is lost, and never answered
    faults.error("Allocate", "INTERNAL", "broken", skip=2)        from the third on, calls are answered with that error
    faults.corrupt("GetInfo")                                     one bit of each answer is flipped
    faults.disconnect("NodePrepareResources", Moment.DURING)      the connection breaks off in the middle of the answer
    faults.reorder("NodePrepareResources")                        of two calls, the second is answered first
    faults.duplicate("NodePrepareResources", probability=0.1)     now and then the driver is called twice
    faults.error("*", when=lambda call: "gpu" in str(call.request))

A method is named by its last part, by its whole path, or by a pattern for paths (`/v1beta1.*`). If several faults meet
a call, they happen one after the other, in the order in which they were asked for. Faults happen only to calls that
go through a proxy, as with `DriverRunner.start(…, faults=faults)` and `FaultyWire`.

This module decides; `grpc_proxy` acts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypedDict, Unpack

from devlet.kit.dice import Dice
from devlet.testing import grpc_messages
from devlet.testing.fault_acts import (
    Act,
    Change,
    Corrupt,
    Delay,
    Disconnect,
    Drop,
    Duplicate,
    Error,
    Hang,
    Moment,
    Reorder,
    flipped,
    replaced,
)
from devlet.testing.spelling import check_word, status_code
from devlet.testing.waiting import DEADLINE, ThreadSafeChanges

__all__ = ["ANSWER", "REQUEST", "Call", "Faults", "Moment", "Occasion", "Part", "Rule"]


class Part(StrEnum):
    REQUEST = "request"
    ANSWER = "answer"


REQUEST, ANSWER = Part.REQUEST, Part.ANSWER


@dataclass(slots=True, eq=False)
class Call:
    """One call. `requests` are what the caller sent, and `answers` what the driver answered, before any fault. `faults`
    are those that happened to it. `status` is the gRPC status that the caller got: empty while the call is under way,
    CANCELLED if the caller gave up or was cut off."""

    path: str
    socket: Path
    requests: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    status: str = ""

    @property
    def method(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def request(self) -> Any:
        """The first request as a protobuf message; None if its type is not known, or it cannot be decoded."""
        return grpc_messages.request(self.path, self.requests[0]) if self.requests else None

    @property
    def answer(self) -> Any:
        """The last answer so far, as `request`."""
        return grpc_messages.answer(self.path, self.answers[-1]) if self.answers else None


class Occasion(TypedDict, total=False):
    """When a fault happens. After the work, each answer of a stream is an occasion of its own."""

    when: Callable[[Call], bool]
    skip: int  # how many occasions are skipped first
    probability: float
    times: int  # how often it happens at most


class Rule:
    """One fault. `hits` is how often it happened."""

    def __init__(self, faults: "Faults", method: str, act: Act, after: bool, occasion: "Occasion") -> None:
        self.act = act
        self.after = after
        self.hits = 0
        self.is_over = False
        self._faults = faults
        self._method = method
        self._occasion = occasion
        self._skipped = 0

    def end(self) -> None:
        """End the fault; calls that it holds continue."""
        self.is_over = True
        self._faults.changes.notify()

    async def until_hit(self, times: int = 1) -> None:
        await self._faults.changes.until(lambda: self.hits >= times)

    def wait_hit(self, times: int = 1, *, within: float = DEADLINE) -> None:
        """Wait like `until_hit` in a thread without an event loop. Raise AssertionError if it takes longer."""
        if not self._faults.changes.wait_until(lambda: self.hits >= times, within=within):
            raise AssertionError(f"{self} did not happen within {within:g} s\n{self._faults.story}")

    def meets(self, call: Call, after: bool, dice: Dice) -> bool:
        """Return True if it happens now, and count it."""
        if self.is_over or after is not self.after or not matches(self._method, call.path):
            return False
        if self._occasion.get("times") == self.hits or not self._occasion.get("when", _always)(call):
            return False
        if self._skipped < self._occasion.get("skip", 0):
            self._skipped += 1
            return False
        if not dice.chance(self._occasion.get("probability", 1.0)):
            return False
        self.hits += 1
        return True

    def __str__(self) -> str:
        return f"{self.act} of {self._method}{' after the work' if self.after else ''}"


class Faults:
    """The faults and calls between a node and a driver. They may be changed at any time, from any thread. With the same
    seed, the same sequence of calls meets the same faults. Every method that adds a fault also takes an `Occasion`, and
    returns the `Rule`."""

    def __init__(self, seed: int = 0) -> None:
        self.calls: list[Call] = []
        self.changes = ThreadSafeChanges()
        self._dice = Dice(seed)
        self._rules: list[Rule] = []

    # Faults

    def delay(self, method: str, seconds: float, *, after: bool = False, **occasion: Unpack[Occasion]) -> Rule:
        """Delay calls, or with `after`, answers."""
        return self._add(method, Delay(seconds), after, occasion)

    def hang(self, method: str, *, after: bool = False, **occasion: Unpack[Occasion]) -> Rule:
        """Forward nothing until the rule is ended, or, with `after`, answer nothing."""
        return self._add(method, Hang(), after, occasion)

    def drop(self, method: str, *, after: bool = False, **occasion: Unpack[Occasion]) -> Rule:
        """Lose calls, or with `after`, answers: the caller waits until it gives up."""
        return self._add(method, Drop(), after, occasion)

    def error(
        self,
        method: str,
        code: str = "INTERNAL",
        text: str = "told to fail",
        *,
        after: bool = False,
        **occasion: Unpack[Occasion],
    ) -> Rule:
        """Answer with a gRPC error. With `after` the driver does its work nevertheless."""
        return self._add(method, Error(status_code(code), text), after, occasion)

    def corrupt(
        self, method: str, of: Part = ANSWER, to: bytes | Change | None = None, **occasion: Unpack[Occasion]
    ) -> Rule:
        """Change the bytes of requests or answers: to these bytes, with this function, or in one random bit."""
        change = to if callable(to) else flipped(self._dice) if to is None else replaced(to)
        return self._add(method, Corrupt(change), of is ANSWER, occasion)

    def disconnect(self, method: str, moment: Moment = Moment.BEFORE, **occasion: Unpack[Occasion]) -> Rule:
        """Close the caller's connection, with all other calls on it."""
        return self._add(method, Disconnect(moment), moment is not Moment.BEFORE, occasion)

    def reorder(self, method: str, *, count: int = 2, within: float = 5.0, **occasion: Unpack[Occasion]) -> Rule:
        """Answer groups of calls in reverse order. A call that waits alone for `within` seconds continues."""
        return self._add(method, Reorder(count, within), False, occasion)

    def duplicate(self, method: str, of: Part = REQUEST, **occasion: Unpack[Occasion]) -> Rule:
        """Call the driver twice, one call after the other, and return its second answer; or return each answer twice.
        The first of two streams is left when its answers begin."""
        return self._add(method, Duplicate(), of is ANSWER, occasion)

    def recover(self) -> None:
        """End all faults. Calls that hang continue; dropped calls stay lost."""
        rules, self._rules = self._rules, []
        for rule in rules:
            rule.end()

    def _add(self, method: str, act: Act, after: bool, occasion: Occasion) -> Rule:
        for option in occasion:
            check_word(option, Occasion.__annotations__, "option of a fault")
        rule = Rule(self, method, act, after, occasion)
        self._rules = [*(each for each in self._rules if not each.is_over), rule]
        return rule

    # Calls

    def asked(self, method: str = "*") -> list[Call]:
        return [call for call in self.calls if matches(method, call.path)]

    def over(self, method: str = "*") -> list[Call]:
        """Return the calls that ended."""
        return [call for call in self.asked(method) if call.status]

    async def until_asked(self, method: str, times: int = 1) -> list[Call]:
        """Wait until it was called `times` times."""
        await self.changes.until(lambda: len(self.asked(method)) >= times)
        return self.asked(method)

    async def until_over(self, method: str, times: int = 1) -> list[Call]:
        """Wait until `times` calls ended."""
        await self.changes.until(lambda: len(self.over(method)) >= times)
        return self.over(method)

    def wait_asked(self, method: str, times: int = 1, *, within: float = DEADLINE) -> list[Call]:
        """Wait like `until_asked` in a thread without an event loop. Raise AssertionError if it takes longer."""
        if not self.changes.wait_until(lambda: len(self.asked(method)) >= times, within=within):
            seen = f"{len(self.asked(method))} of {times} calls of {method} within {within:g} s"
            raise AssertionError(f"{seen}\n{self.story}")
        return self.asked(method)

    def forget_calls(self) -> None:
        self.calls.clear()

    @property
    def story(self) -> str:
        """Return all calls as text, one per line."""
        return "\n".join(f"  {call.path}: {call.status or 'under way'}{_shown(call.faults)}" for call in self.calls)

    # For the proxies

    def meeting(self, call: Call, *, after: bool) -> list[Rule]:
        """Return the rules that happen to the call now, in order."""
        found = [rule for rule in self._rules if rule.meets(call, after, self._dice)]
        call.faults += [str(rule.act) for rule in found]
        if found:
            self.changes.notify()
        return found


def matches(method: str, path: str) -> bool:
    return method in (path, path.rpartition("/")[2]) or fnmatchcase(path, method)


def _always(call: Call) -> bool:
    return True


def _shown(faults: list[str]) -> str:
    return f" ({', '.join(faults)})" if faults else ""
